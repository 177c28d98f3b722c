# Reduces `go test -bench` output with -count to the fastest run of each benchmark, in the order of first appearance: on a machine that others use too,
# the fastest run is the one least disturbed.
/ns\/op/ {
	if (!($1 in best)) { order[++n] = $1; best[$1] = $3 }
	if ($3 + 0 < best[$1] + 0) best[$1] = $3
}
END { for (i = 1; i <= n; i++) printf "%-60s %12s ns/op\n", order[i], best[order[i]] }
