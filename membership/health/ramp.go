package health

import (
	"math"
	"time"
)

// Ramp returns the weight, per mille, of a server that began to serve elapsed ago:
//
//	max(MinWeight, 1000 * (elapsed/SlowStart)^(1/Aggression))
//
// which is Envoy's slow start. The zero Config is not usable; see [Config.WithDefaults].
func (c Config) Ramp(elapsed time.Duration) int {
	if elapsed >= c.SlowStart {
		return 1000
	}
	share := max(0, float64(elapsed)/float64(c.SlowStart))
	w := int(math.Round(1000 * math.Pow(share, 1/c.Aggression)))
	return min(1000, max(c.MinWeight, w))
}
