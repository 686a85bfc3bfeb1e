package stack

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMountsBelowFindsOnlyTheFoldersOwn(t *testing.T) {
	const table = `22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
40 22 0:40 / /home/me/.lab/guests/a/root rw - overlay overlay rw
41 40 0:41 / /home/me/.lab/guests/a/root/dev rw - tmpfs tmpfs rw
42 22 0:42 / /home/me/.lab\040two/guests/b rw - overlay overlay rw
43 22 0:43 / /home/me/.lab2/guests/c rw - overlay overlay rw
`
	want := []string{"/home/me/.lab/guests/a/root", "/home/me/.lab/guests/a/root/dev"}
	if diff := cmp.Diff(want, mountsBelow([]byte(table), "/home/me/.lab")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/home/me/.lab two/guests/b"}, mountsBelow([]byte(table), "/home/me/.lab two")); diff != "" {
		t.Errorf("a folder with a space in its name: -want +got\n%s", diff)
	}
}
