"""From functional to imperative: accT and conT for each primitive, views resolved to accesses."""
