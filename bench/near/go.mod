module cacherouter/bench/near

go 1.26.0

require cacherouter v0.0.0

require github.com/maypok86/otter/v2 v2.4.0

replace cacherouter => ../..
