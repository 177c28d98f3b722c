package admin

import (
	"slices"
	"strings"

	"cacherouter/latency"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

var messageTypes = map[kind]*dto.MetricType{
	counts: dto.MetricType_COUNTER.Enum(), gauges: dto.MetricType_GAUGE.Enum(), observes: dto.MetricType_HISTOGRAM.Enum(),
}

// poolLabel is the label of figures of one of several pools.
var poolLabel = "pool"

// messages returns the figures as the metrics library has them, for scrapers that speak
// protocol buffers. Only those get native histograms.
func (f *figures) messages() (all []*dto.MetricFamily) {
	for _, to := range f.families() {
		all = append(all, messageOf(to, f.of[to]))
	}
	return all
}

// messageOf returns the message of a family. What it is made of comes in blocks, as there may
// be very many figures.
func messageOf(to *family, all []figure) *dto.MetricFamily {
	n := len(to.labels)
	metrics, pairs := make([]dto.Metric, len(all)), make([]dto.LabelPair, n*len(all))
	pointers := make([]*dto.LabelPair, n*len(all))
	out := &dto.MetricFamily{Name: &to.name, Help: &to.help, Type: messageTypes[to.kind], Metric: make([]*dto.Metric, len(all))}
	for i := range all {
		x, m := &all[i], &metrics[i]
		for j := range to.labels {
			p := &pairs[i*n+j]
			p.Name, p.Value = &to.labels[j], &x.labels[to.order[j]]
			pointers[i*n+j] = p
		}
		out.Metric[i], m.Label = m, pointers[i*n:(i+1)*n:(i+1)*n]
		if x.pool != "" {
			m.Label = append(m.Label, &dto.LabelPair{Name: &poolLabel, Value: &x.pool})
			slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
		}
	}
	switch to.kind {
	case counts:
		values := make([]dto.Counter, len(all))
		for i := range all {
			values[i].Value, metrics[i].Counter = &all[i].value, &values[i]
		}
	case gauges:
		values := make([]dto.Gauge, len(all))
		for i := range all {
			values[i].Value, metrics[i].Gauge = &all[i].value, &values[i]
		}
	case observes:
		for i := range all {
			metrics[i].Histogram = all[i].histogram.message()
		}
	}
	return out
}

// message returns a histogram with its classic buckets, and with native ones if it has any.
func (h *histogram) message() *dto.Histogram {
	out := &dto.Histogram{SampleCount: &h.count, SampleSum: &h.sum, Bucket: make([]*dto.Bucket, len(h.below))}
	buckets := make([]dto.Bucket, len(h.below))
	for i := range buckets {
		out.Bucket[i] = &buckets[i]
		buckets[i].CumulativeCount, buckets[i].UpperBound = &h.below[i], &h.bounds.at[i]
	}
	if h.fine != nil {
		out.Schema = proto.Int32(latency.Schema)
		out.ZeroThreshold = proto.Float64(latency.Bound(0))
		out.ZeroCount = proto.Uint64(h.fine.Bucket(0))
		addNative(out, h.fine)
	}
	return out
}

// atOne is the bucket of a latency.Histogram that ends at one second, which has the number 0
// among native ones.
const atOne = 17 << latency.Schema

// addNative adds the native buckets: spans of those that are not empty, each bucket told as
// the difference from the one before. What is beyond the last bound is put into a bucket that
// has one.
func addNative(out *dto.Histogram, h *latency.Histogram) {
	next, before := atOne, int64(0)
	out.PositiveDelta = make([]int64, 0, latency.NumBuckets)
	for i := 1; i < latency.NumBuckets; i++ {
		n := int64(h.Bucket(i))
		if n == 0 {
			continue
		}
		if spans := out.PositiveSpan; len(spans) > 0 && i == next {
			*spans[len(spans)-1].Length++
		} else {
			out.PositiveSpan = append(spans, &dto.BucketSpan{Offset: proto.Int32(int32(i - next)), Length: proto.Uint32(1)})
		}
		out.PositiveDelta = append(out.PositiveDelta, n-before)
		next, before = i+1, n
	}
	if len(out.PositiveSpan) == 0 { // which tells a native histogram that is empty from none
		out.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(0)}}
	}
}
