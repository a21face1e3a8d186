// Package schemas is the fleet's contract with other programs, embedded: a JSON Schema (2020-12) for the arguments of
// each tool and for each message, and an AsyncAPI description of the NATS subjects. The code reads its rules from here.
package schemas

import "embed"

// Files holds tools/*.json, one for each tool and named after it; portal/*.json, the portal's own calls; messages/*.json,
// what travels over NATS and HTTP; and asyncapi.yaml.
//
//go:embed tools/*.json portal/*.json messages/*.json asyncapi.yaml
var Files embed.FS
