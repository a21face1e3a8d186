package natsapi

import (
	"errors"

	"treeline/internal/call"
	"treeline/internal/dispatch"
	"treeline/internal/ledger"
	"treeline/internal/outage"
)

// refused is schemas/messages/refusal.json.
type refused struct {
	Accepted bool           `json:"accepted"`
	CallID   string         `json:"callId,omitempty"`
	Status   call.Status    `json:"status"`
	Code     call.Code      `json:"code"`
	IsError  bool           `json:"isError"`
	Content  []call.Content `json:"content"`
}

func refusal(r *call.Refusal) refused {
	return refused{CallID: r.CallID, Status: call.Refused, Code: r.Code, IsError: true, Content: []call.Content{call.Text(r.Text)}}
}

func busy() refused {
	return refusal(call.Refuse(call.Busy, "The dispatcher has as many requests as it can work on. Nothing was done; send the same again in a moment."))
}

func failed() refused {
	return refusal(call.Refuse(call.Internal, "The system failed at this request. Whether it was done is not known; sending the same "+
		"call again under the same id does nothing twice."))
}

// refused says what a caller is told of an error. callID is set where the request is about one call.
func (a *API) refused(err error, subject, callID string) refused {
	var r *call.Refusal
	switch {
	case errors.As(err, &r):
		own := *r
		if own.CallID == "" {
			own.CallID = callID
		}
		return refusal(&own)
	case errors.Is(err, dispatch.ErrUnknownToken):
		return refusal(withID(call.Refuse(call.TurnUnknown, "The token opens no turn."), callID))
	case errors.Is(err, ledger.ErrNotThere):
		return refusal(withID(call.Refuse(call.InputNotFound, "The turn has no call of this id."), callID))
	}
	if outage.Is(err) {
		a.log.Warn().Err(err).Str("subject", subject).Str("call", callID).Msg("request not served")
		return refusal(withID(call.Refuse(call.Busy, "The system cannot be reached at the moment. Send the same again, under the same "+
			"call id, in a moment: nothing is done twice."), callID))
	}
	a.log.Error().Err(err).Str("subject", subject).Str("call", callID).Msg("request failed")
	out := failed()
	out.CallID = callID
	return out
}
