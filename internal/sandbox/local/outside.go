package local

import (
	"context"

	"treeline/internal/sandbox"

	"golang.org/x/sys/unix"
)

// outside lists what was left in the working folder but in none of its three folders.
func (w *walk) outside(ctx context.Context) error {
	pending := []string{""}
	for len(pending) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		folder := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		dir, names, err := w.open(join(outsideRoot, folder))
		if err != nil {
			return err
		}
		if len(names) == 0 && folder != "" {
			w.leftOutside(folder + "/")
		}
		for _, name := range names {
			if folder == "" && (name == sandbox.Workspace || name == sandbox.Inputs || name == sandbox.Skills) {
				continue
			}
			path := join(folder, name)
			var st unix.Stat_t
			if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				unix.Close(dir)
				return err
			}
			if st.Mode&unix.S_IFMT == unix.S_IFDIR && len(path) <= w.limits.PathBytes {
				pending = append(pending, path)
				continue
			}
			w.leftOutside(path)
		}
		unix.Close(dir)
	}
	return nil
}

func (w *walk) leftOutside(path string) {
	if len(w.result.Outside) == sandbox.MaxListed {
		w.result.OutsideMore++
		return
	}
	w.result.Outside = append(w.result.Outside, path)
}
