// Package schemas is the fleet's contract with other programs, embedded: a JSON Schema (2020-12) for the arguments of
// each tool and for each message, and an AsyncAPI description of the NATS subjects. The code reads its rules from here.
package schemas

import "embed"

// Files holds tools/*.json, one for each tool and named after it, and portal/*.json, the portal's own calls.
//
//go:embed tools/*.json portal/*.json
var Files embed.FS
