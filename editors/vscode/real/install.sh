#!/usr/bin/env bash
# Installs Visual Studio Code (code-server, for Node 20) and the extension into a folder: install.sh FOLDER
# It needs npm, a C++ compiler, ripgrep, the headers of Kerberos, and those of Node in NODE_HEADERS/include/node.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
headers="${NODE_HEADERS:-/usr}"
mkdir -p "$1" && cd "$1"

# nothing is downloaded by the packages' own scripts; what they would fetch is built here
cp "$here/package.json" .
npm install --ignore-scripts --no-audit --no-fund
server="$PWD/node_modules/code-server"
(cd "$server/lib/vscode" && npm install --ignore-scripts --omit=dev --no-audit --no-fund)
(cd "$server/lib/vscode/extensions" && npm install --ignore-scripts --omit=dev --no-audit --no-fund)
ln -sfn node_modules "$server/lib/vscode/node_modules.asar"
gyp="$(npm root -g)/npm/node_modules/node-gyp/bin/node-gyp.js"
for module in @parcel/watcher @vscode/spdlog native-watchdog node-pty kerberos; do
  (cd "$server/lib/vscode/node_modules/$module" && node "$gyp" rebuild --nodedir="$headers")
done
(cd node_modules/argon2 && npx --no-install node-pre-gyp rebuild --build-from-source --nodedir="$headers")
mkdir -p "$server/lib/vscode/node_modules/@vscode/ripgrep/bin"
ln -sf "$(command -v rg)" "$server/lib/vscode/node_modules/@vscode/ripgrep/bin/rg"

(cd "$here/.." && npm install --no-audit --no-fund && npm run package)
node "$server/out/node/entry.js" --user-data-dir user --extensions-dir extensions \
  --install-extension "$here/../rise-lang.vsix"
