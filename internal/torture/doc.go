// Package torture starts a whole fleet as separate processes on this machine, drives it as callers do, breaks it, and
// checks from outside that nothing was lost: every accepted call has one stored result, was told, and had its effect once
// and in its place. What it checks against is a model of its own; it uses nothing of what it checks but the roles' wiring.
package torture
