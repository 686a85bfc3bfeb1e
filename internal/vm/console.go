package vm

import (
	"regexp"
	"strconv"
	"strings"
)

// A Word is what the guest last said about itself on its serial console.
type Word struct {
	Step, State, Reason string
}

// States that the guest reports; a step may have others on the way.
const (
	wordFailed   = "failed"
	wordRestored = "restored"
)

// stepStart begins a run of the guest's script.
const stepStart = "start"

// String renders the word as a clause of a sentence.
func (w Word) String() string {
	if w.Reason == "" {
		return "step " + w.Step + " is " + w.State
	}
	return "step " + w.Step + " is " + w.State + ": " + w.Reason
}

var wordPattern = regexp.MustCompile(`dbaas: step=(\S+) state=(\S+)(?: reason=(?:"([^"]*)"|(\S+)))?`)

// Words reads a serial console: the last thing the guest said, and the failure
// that still stands, if any. A failure stands until its step is tried again or
// the script runs anew; that the last good configuration was restored does not
// make the new one work.
func Words(console string) (last, failure *Word) {
	for line := range strings.Lines(console) {
		m := wordPattern.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		w := Word{Step: m[1], State: m[2], Reason: m[3] + m[4]}
		switch {
		case w.State == wordFailed:
			failure = &w
		case failure != nil && w.State != wordRestored && (w.Step == failure.Step || w.Step == stepStart):
			failure = nil
		}
		last = &w
	}
	return last, failure
}

// FilesystemMiB reads how large the data filesystem is by the guest's last word
// about it; ok is false when it has said nothing.
func FilesystemMiB(console string) (size int64, ok bool) {
	pattern := regexp.MustCompile(`dbaas: step=(?:disk|grow) state=ok reason="(\d+) MiB"`)
	for line := range strings.Lines(console) {
		if m := pattern.FindStringSubmatch(line); m != nil {
			n, err := strconv.ParseInt(m[1], 10, 64)
			if err == nil {
				size, ok = n, true
			}
		}
	}
	return size, ok
}
