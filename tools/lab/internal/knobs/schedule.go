package knobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// A Schedule is what a guest's agent reports over time.
type Schedule struct {
	steps []step
	// period is after what time the schedule starts over; 0 is never.
	period time.Duration
}

type step struct {
	after     time.Duration
	addresses map[string][]netip.Addr
}

// ParseSchedule reads the value of the knob Addresses: a list of steps in the
// order of time, each with the addresses of every interface from then on.
func ParseSchedule(value string) (*Schedule, error) {
	var raw []struct {
		After     string                  `json:"after"`
		Addresses map[string][]netip.Addr `json:"addresses"`
		Repeat    bool                    `json:"repeat"`
	}
	if err := json.Unmarshal([]byte(value), &raw); err != nil {
		return nil, fmt.Errorf("parse the list of addresses: %w", err)
	}
	s := new(Schedule)
	var last time.Duration
	for i, r := range raw {
		after, err := time.ParseDuration(r.After)
		if err != nil {
			return nil, fmt.Errorf("parse step %d: %w", i, err)
		}
		if after < last {
			return nil, fmt.Errorf("parse step %d: it is before the step in front of it", i)
		}
		last = after
		if !r.Repeat {
			s.steps = append(s.steps, step{after, r.Addresses})
			continue
		}
		if i != len(raw)-1 || after == 0 {
			return nil, errors.New("parse the list of addresses: repeat belongs to the last step, later than 0s")
		}
		s.period = after
	}
	return s, nil
}

// At returns the addresses of each interface at a time since the boot.
func (s *Schedule) At(since time.Duration) map[string][]netip.Addr {
	if s.period > 0 {
		since %= s.period
	}
	var now map[string][]netip.Addr
	for _, st := range s.steps {
		if st.after <= since {
			now = st.addresses
		}
	}
	return now
}
