package faulttest

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The command line.
var (
	only    = flag.String("cell", "", "try only the cells that this regular expression finds")
	kept    = flag.String("ledger", "", "file of the cells that were tried, which are not tried again")
	workers = flag.Int("workers", 3, "how many cells are tried at a time")
	limit   = flag.Duration("for", 0, "begin no cell after this time; 0: try all")
	seed    = flag.String("seed", "", "try the cells in an order that this decides")
)

// matrix tries cells.
type matrix struct {
	t      *testing.T
	lab    *lab
	ledger *ledger
	end    time.Time

	workers []*worker
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	m := &matrix{t: t, lab: useLab(t)}
	var err error
	m.ledger, err = openLedger(*kept)
	must(t, err)
	if *limit > 0 {
		m.end = time.Now().Add(*limit)
	}
	program := t.TempDir()
	build := sync.OnceValues(func() (string, error) { return buildProvider(program) })
	for range *workers {
		p := m.lab.newProxy(t)
		m.workers = append(m.workers, &worker{
			lab: m.lab, proxy: p, core: core{kubeconfig: p.Kubeconfig}, standing: map[string]*standing{},
			newTerraform: func() (*terraform, error) {
				binary, err := build()
				if err != nil {
					return nil, err
				}
				return newTerraform(t.TempDir(), binary)
			},
		})
	}
	t.Cleanup(m.close)
	return m
}

// TestFaults disturbs every request of every operation in every way.
func TestFaults(t *testing.T) {
	m := newMatrix(t)
	queue := m.choose(m.record())
	t.Logf("%d cells", len(queue))
	began := time.Now()
	tried := m.run(queue)
	if tried == 0 && len(queue) > 0 {
		t.Error("no cell was tried")
	}
	if tried < len(queue) {
		t.Logf("not tried: %d cells", len(queue)-tried)
	}
	t.Logf("%d cells in %v: %.1f a minute", tried, time.Since(began).Round(time.Second), float64(tried)/time.Since(began).Minutes())
	var rows, columns []string
	for _, o := range operations() {
		rows = append(rows, o.name)
	}
	for _, f := range faults() {
		columns = append(columns, f.name)
	}
	m.ledger.table(os.Stdout, rows, columns)
}

// wanted says whether the command line asks for some of a row's cells.
func wanted(row string) bool {
	if *only == "" {
		return true
	}
	first, _, found := strings.Cut(strings.TrimPrefix(*only, "^"), "/")
	if !found {
		first = *only
	}
	return regexp.MustCompile(first).MatchString(row)
}

// record runs every operation undisturbed, and makes its cells of what the
// proxy has recorded.
func (m *matrix) record() []cell {
	m.t.Helper()
	var mu sync.Mutex
	var all []cell
	var jobs []func(*worker) error
	for _, o := range operations() {
		if !wanted(o.name) {
			continue
		}
		jobs = append(jobs, func(w *worker) error {
			cells, err := w.cells(m.t.Context(), o)
			if err != nil {
				return fmt.Errorf("%s, undisturbed: %w", o.name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, cells...)
			return nil
		})
	}
	m.each(jobs)
	return all
}

// choose leaves out what was tried or is not wanted. In a sample every order
// is as good as another; in a full run neighbours share instances.
func (m *matrix) choose(all []cell) []cell {
	pattern := regexp.MustCompile(*only)
	all = slices.DeleteFunc(all, func(c cell) bool {
		return !pattern.MatchString(c.String()) || m.ledger.has(c.String())
	})
	slices.SortFunc(all, func(a, b cell) int { return strings.Compare(a.String(), b.String()) })
	if *seed != "" {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(*seed)) // a hash never fails
		m.t.Logf("seed %s: the same cells again with -seed %s", *seed, *seed)
		random := rand.New(rand.NewPCG(hash.Sum64(), 0))
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	return all
}

// run tries the cells and returns how many it has tried.
func (m *matrix) run(queue []cell) int {
	m.t.Helper()
	tried := 0
	var mu sync.Mutex
	var jobs []func(*worker) error
	for _, c := range queue {
		jobs = append(jobs, func(w *worker) error {
			if !m.end.IsZero() && time.Now().After(m.end) {
				return nil
			}
			r := w.try(m.t.Context(), c)
			mu.Lock()
			tried++
			mu.Unlock()
			if r.Outcome == lost || r.Outcome == wrong {
				m.t.Errorf("%s: %s\n  instance %s; said: %s\n  again: DBAAS_LAB_DIR=$PWD/.lab go test ./internal/faulttest -run '^%s$' -workers 1 -cell %q",
					c, r.Why, r.Instance, r.Said, m.t.Name(), "^"+regexp.QuoteMeta(c.String())+"$")
			}
			return m.ledger.add(r)
		})
	}
	m.each(jobs)
	return tried
}

// each gives jobs to the workers.
func (m *matrix) each(jobs []func(*worker) error) {
	m.t.Helper()
	queue := make(chan func(*worker) error, len(jobs))
	for _, job := range jobs {
		queue <- job
	}
	close(queue)
	var all sync.WaitGroup
	for _, w := range m.workers {
		all.Go(func() {
			for job := range queue {
				if err := job(w); err != nil {
					m.t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// close destroys what the workers keep.
func (m *matrix) close() {
	m.t.Helper()
	// The test's own context is over.
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute)
	defer stop()
	for _, w := range m.workers {
		if err := w.end(ctx); err != nil {
			m.t.Errorf("in the end: %v", err)
		}
	}
}

// cells runs one operation undisturbed and makes its cells.
func (w *worker) cells(ctx context.Context, o operation) ([]cell, error) {
	var s *standing
	to := args(nil)
	var err error
	if o.kind == creates {
		s = &standing{name: newName()}
		s.config = monitored(minimal(s.name))
		to = s.config
	} else if s, to, err = w.instance(ctx, o); err != nil {
		return nil, err
	}
	name := s.name
	if o.kind == looks && o.look == lookPlanCreate {
		name = newName()
	}
	said := &verdicts{}
	record, mark, err := w.disturbed(nil, func(ready func() error) (err error) {
		switch o.kind {
		case looks:
			_, said, err = w.look(ctx, o, s, args{"name": name}, ready)
		case removes:
			s.object, said, err = w.apply(ctx, s.object, wish{s.config, true}, ready)
			w.forget(o)
		default:
			s.object, said, err = w.apply(ctx, s.object, wish{Config: to}, ready)
			s.config = to
		}
		return err
	})
	if err != nil || said.failed() {
		return nil, fmt.Errorf("%s, %w", said.text(), err)
	}
	if o.kind == creates {
		err = w.destroy(ctx, s)
	}
	return cellsOf(o, record, mark, name), err
}
