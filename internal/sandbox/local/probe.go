package local

import (
	"errors"

	"treeline/internal/sandbox"
)

// unavailable wraps the reason why init or the launcher could not do its work.
func unavailable(err error) error {
	if err == nil {
		err = errors.New("the sandbox's first process gave no account of itself")
	}
	return &sandbox.Unavailable{Driver: Name, Reason: err.Error()}
}
