# Machine code as an array of C: cmake -DCODE=f.cubin -DNAME=f_code -DOUT=f_code.c -P embed.cmake
file(READ "${CODE}" bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUT}" "_Alignas(64) const unsigned char ${NAME}[] = {${bytes}};\n")
