package admin

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/encoding/protodelim"
)

// scraper answers GET /metrics: with what it finds of the router when it is asked, and with
// what the metrics library knows of the process.
type scraper struct {
	find    func() *figures
	process *prometheus.Registry
	// turn is taken by who is answered: scrapes cost time, and however many come together
	// they get no more than one processor.
	turn chan struct{}
	size int // of the last answer in bytes; guarded by turn
}

func newScraper(find func() *figures) *scraper {
	s := &scraper{find: find, process: prometheus.NewRegistry(), turn: make(chan struct{}, 1)}
	s.process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	return s
}

// ServeHTTP implements http.Handler.
func (s *scraper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, messages := expfmt.NewFormat(expfmt.TypeTextPlain), expfmt.NewFormat(expfmt.TypeProtoDelim)
	format, write := text, s.writeText
	if expfmt.NegotiateAccept(r.Header, text, messages).FormatType() == expfmt.TypeProtoDelim {
		format, write = messages, s.writeMessages
	}
	answer, err := s.ask(r, write)
	if err != nil {
		http.Error(w, "cannot gather metrics: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", string(format))
	w.Header().Set("Vary", "Accept, Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		compress(w, answer)
		return
	}
	w.Write(answer) // the client has gone if that fails
}

// ask returns the answer to a scrape, when it is its turn. What is sent then may take its
// time.
func (s *scraper) ask(r *http.Request, write func(*bytes.Buffer) error) ([]byte, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	b := bytes.NewBuffer(make([]byte, 0, s.size+s.size/8))
	err := write(b)
	s.size = b.Len()
	return b.Bytes(), err
}

// compress writes b in gzip, as fast as that goes: it shrinks to a few percent anyway.
func compress(w io.Writer, b []byte) {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		panic("bug: " + err.Error())
	}
	z.Write(b)
	z.Close()
}

// writeText writes all metrics in text.
func (s *scraper) writeText(b *bytes.Buffer) error {
	process, err := s.process.Gather()
	if err != nil {
		return err
	}
	for _, f := range process {
		if _, err := expfmt.MetricFamilyToText(b, f); err != nil {
			return fmt.Errorf("cannot write %s: %w", f.GetName(), err)
		}
	}
	b.Write(s.find().appendText(b.AvailableBuffer()))
	return nil
}

// writeMessages writes all metrics as messages.
func (s *scraper) writeMessages(b *bytes.Buffer) error {
	process, err := s.process.Gather()
	if err != nil {
		return err
	}
	for _, f := range append(s.find().messages(), process...) {
		if _, err := protodelim.MarshalTo(b, f); err != nil {
			return fmt.Errorf("cannot write %s: %w", f.GetName(), err)
		}
	}
	return nil
}
