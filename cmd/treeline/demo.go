package main

import (
	"context"
	"errors"

	"treeline/internal/fleet"
)

func demo(context.Context, fleet.Config) error { return errors.New("no demo yet") }
