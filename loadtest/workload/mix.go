package workload

import (
	"fmt"
	"strings"
)

// Mix is a workload as it was published: by its parameters, not a replay. The zero value of a field says
// nothing about it.
type Mix struct {
	Name    string
	About   string // one line
	Key     Sizes
	Value   Sizes
	Choice  Choice
	Ratio   Ratio
	Lives   Lives
	Missing string // what the source does not say, and what stands in for it
}

// ETC is the most general of the five pools of Facebook's that B. Atikoglu, Y. Xu, E. Frachtenberg, S. Jiang
// and M. Paleczny describe in "Workload Analysis of a Large-Scale Key-Value Store", SIGMETRICS 2012. Keys:
// generalized extreme value, location 30.7984, scale 8.20449, shape 0.078688. Values: a table for those of
// up to 14 bytes, 44 % of all; above, generalized Pareto with location 15, scale 214.476, shape 0.348238.
// 30 gets to a set.
var ETC = Mix{
	Name: "etc", About: "Facebook's pool ETC (Atikoglu et al., SIGMETRICS 2012)",
	Key: "gev:30.7984:8.20449:0.078688", Value: "etc", Choice: "zipf:0.99", Ratio: Ratio{1, 30, 0},
	Missing: "the source shows skew but gives no exponent: zipf:0.99 stands for it, as in YCSB",
}

// Mixes are all published workloads, ETC and some clusters of Twitter's of March 2020. These are described by
// J. Yang, Y. Yue and K. V. Rashmi, "A large scale analysis of hundreds of in-memory cache clusters at Twitter",
// OSDI 2020; the figures of each cluster are those of the table published with the traces
// (github.com/twitter/cache-trace, stat/2020Mar.md): mean length of keys and values, shares of operations,
// common lives, exponent of Zipf's law.
func Mixes() []Mix {
	twitter := func(cluster int, what string, key, value Sizes, choice Choice, ratio Ratio, lives Lives) Mix {
		return Mix{
			Name: fmt.Sprintf("twitter%d", cluster), About: fmt.Sprintf("Twitter's cluster %d of March 2020 (Yang et al., OSDI 2020): %s", cluster, what),
			Key: key, Value: value, Choice: choice, Ratio: ratio, Lives: lives,
			Missing: "the source gives the mean length of keys and values only: all are as long as that",
		}
	}
	return []Mix{
		ETC,
		twitter(4, "mostly read, lives of minutes", "67", "2439", "zipf:1.1004", Ratio{7, 93, 0}, "60s:0.39,300s:0.24,1h:0.13,600s:0.12,4h:0.09,24h:0.03"),
		twitter(7, "a fifth writes", "17", "1936", "zipf:1.0666", Ratio{18, 82, 0}, "6480s:0.28,6120s:0.24,6840s:0.23,5760s:0.13,2h:0.12"),
		twitter(8, "half writes, large values", "23", "9497", "zipf:1.7366", Ratio{50, 50, 0}, "1380s:0.95,1379s:0.05"),
		twitter(12, "written far more than read", "44", "1030", "zipf:0.3048", Ratio{80, 20, 0}, "300s:0.98,299s:0.02"),
		twitter(19, "flat, small values, a quarter writes", "42", "101", "zipf:0.735", Ratio{25, 75, 0}, "27000s:0.15,26640s:0.14,23760s:0.14,25920s:0.14"),
		twitter(29, "large working set", "36", "799", "zipf:1.2323", Ratio{13, 86, 0}, "1h:0.67,2h:0.33"),
		twitter(34, "read, values of 322 bytes", "33", "322", "zipf:1.1401", Ratio{6, 94, 0}, "38160s:0.08,40320s:0.08,39960s:0.08,36360s:0.04"),
	}
}

// Find returns the mix of that name.
func Find(name string) (Mix, error) {
	var names []string
	for _, m := range Mixes() {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Mix{}, fmt.Errorf("there is no mix %q; there are %s", name, strings.Join(names, ", "))
}
