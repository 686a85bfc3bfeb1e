package faulttest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
)

// ledger is the file of the cells that were tried, one a line: a run that was
// ended goes on where it stopped.
type ledger struct {
	mu    sync.Mutex
	file  *os.File
	tried map[string]result
}

// openLedger reads what was tried before. Without a path nothing is kept.
func openLedger(path string) (*ledger, error) {
	l := &ledger{tried: map[string]result{}}
	if path == "" {
		return l, nil
	}
	var err error
	if l.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(l.file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r result
		// A line that a kill has cut off is a cell that is tried again.
		if json.Unmarshal(lines.Bytes(), &r) == nil && r.Outcome != lost && r.Outcome != wrong {
			l.tried[r.Cell] = r
		}
	}
	return l, lines.Err()
}

func (l *ledger) has(cell string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.tried[cell]
	return ok
}

func (l *ledger) add(r result) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried[r.Cell] = r
	if l.file == nil {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = l.file.Write(append(line, '\n'))
	return err
}

// count is one field of the table.
type count struct{ healed, next, lost, wrong, missed int }

func (c *count) add(o outcome) {
	switch o {
	case healed:
		c.healed++
	case next:
		c.next++
	case lost:
		c.lost++
	case wrong:
		c.wrong++
	case missed:
		c.missed++
	}
}

func (c count) tried() int { return c.healed + c.next + c.lost + c.wrong }

// table writes operation × fault: tried, healed by itself, healed by the next
// apply, and lost, as Markdown. Cells that are not among these are left out.
func (l *ledger) table(w io.Writer, rows, columns []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fields, sums, ways := map[string]*count{}, map[string]*count{}, map[string]map[string]int{}
	for name, r := range l.tried {
		operation, rest, _ := strings.Cut(name, "/")
		kind, _, _ := strings.Cut(rest, "/")
		for key, group := range map[string]map[string]*count{operation + "/" + kind: fields, operation: sums, "": sums} {
			if group[key] == nil {
				group[key] = &count{}
			}
			group[key].add(r.Outcome)
		}
		if ways[operation] == nil {
			ways[operation] = map[string]int{}
		}
		if r.How != "" {
			ways[operation][r.How]++
		}
	}
	fmt.Fprintf(w, "| operation | tried | healed itself | next apply | lost |")
	for _, column := range columns {
		fmt.Fprintf(w, " %s |", column)
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("--:|", 4+len(columns)))
	for _, row := range append(rows, "") {
		sum := sums[row]
		if sum == nil {
			continue
		}
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d |", orAll(row), sum.tried(), sum.healed, sum.next, sum.lost)
		for _, column := range columns {
			fmt.Fprintf(w, " %s |", fields[row+"/"+column])
		}
		fmt.Fprintln(w)
	}
	for _, row := range rows {
		for _, way := range slices.Sorted(maps.Keys(ways[row])) {
			fmt.Fprintf(w, "\n%s, %s: %d\n", row, way, ways[row][way])
		}
	}
	if sum := sums[""]; sum != nil {
		fmt.Fprintf(w, "\njudged wrong: %d, requests that did not come: %d\n", sum.wrong, sum.missed)
	}
}

func orAll(row string) string {
	if row == "" {
		return "**all**"
	}
	return row
}

// String is healed/next, and what must not be.
func (c *count) String() string {
	switch {
	case c == nil || c.tried() == 0:
		return ""
	case c.lost+c.wrong > 0:
		return fmt.Sprintf("%d+%d **%d**", c.healed, c.next, c.lost+c.wrong)
	case c.next == 0:
		return fmt.Sprint(c.healed)
	}
	return fmt.Sprintf("%d+%d", c.healed, c.next)
}
