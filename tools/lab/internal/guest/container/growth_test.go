package container

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResizeCommandsAreThoseOfTheDisksRules(t *testing.T) {
	rules := `# ENV{RESIZE}=="1", RUN+="/bin/comment"
ACTION=="change", SUBSYSTEM=="block", ENV{RESIZE}=="1", ENV{ID_SERIAL}=="pgdata", RUN+="/bin/one arg"
ACTION=="change", SUBSYSTEM=="block", ENV{RESIZE}=="1", ENV{ID_SERIAL}=="other", RUN+="/bin/other"
ACTION=="change", SUBSYSTEM=="block", ENV{RESIZE}=="1", RUN+="/bin/any"
ACTION=="change", SUBSYSTEM=="block", RUN+="/bin/change"
`
	want := [][]string{{"/bin/one", "arg"}, {"/bin/any"}}
	if diff := cmp.Diff(want, resizeCommands(rules, "pgdata")); diff != "" {
		t.Error(diff)
	}
}
