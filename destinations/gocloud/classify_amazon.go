package gocloud

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/packfinderz/outbox"
)

// The codes with which Amazon refuses credentials. What they may not do has others.
var amazonCredentials = []string{
	"AuthFailure", "ExpiredToken", "ExpiredTokenException", "IncompleteSignature", "InvalidAccessKeyId", "InvalidClientTokenId",
	"InvalidSecurity", "InvalidSignatureException", "MissingAuthenticationToken", "MissingAuthenticationTokenException", "OptInRequired",
	"RequestExpired", "RequestTimeTooSkewed", "SignatureDoesNotMatch", "UnrecognizedClientException",
}

// The codes of a queue or topic that is not there, or not ours to use.
var amazonMissing = []string{
	"AWS.SimpleQueueService.NonExistentQueue", "AccessDenied", "AccessDeniedException", "AuthorizationError", "InvalidAddress", "NotFound",
	"QueueDoesNotExist",
}

// classifyAmazon goes by the code that SNS or SQS gave to a request, or to a message in it.
func classifyAmazon(err error) error {
	code, ofMessage := amazonCode(err)
	switch {
	case strings.Contains(err.Error(), "get credentials:"): // the client found none
		return outbox.Misconfigured(err)
	case code == "":
		return nil
	case slices.Contains(amazonCredentials, code):
		return outbox.Misconfigured(err)
	case strings.Contains(code, "Throttl"), code == "RequestLimitExceeded", code == "TooManyRequests":
		return outbox.TopicUnavailable(err)
	case slices.Contains(amazonMissing, code):
		return outbox.TopicMissing(err)
	case strings.HasPrefix(code, "Invalid") && namesPlace(err): // none of this service or region
		return outbox.TopicMissing(err)
	case strings.HasSuffix(code, "TooLong"), code == "InvalidMessageContents":
		return outbox.Rejected(err) // other codes of invalid requests may be about how the topic is set up
	case !ofMessage:
		return nil
	case strings.HasPrefix(code, "KMS"), strings.HasPrefix(code, "Kms"):
		return outbox.TopicUnavailable(err)
	}
	return nil
}

// namesPlace reports whether the service found fault with where the message was to go.
func namesPlace(err error) bool {
	return strings.Contains(err.Error(), "TopicArn") || strings.Contains(err.Error(), "QueueUrl")
}

// ofMessages is what the driver makes of a request of which some messages were not taken.
var ofMessages = regexp.MustCompile(`Batch failed for \d+ message\(s\): ([A-Za-z.]+),`)

// amazonCode is the code of an error, and whether it is about a message rather than the request.
func amazonCode(err error) (code string, ofMessage bool) {
	var answer interface{ ErrorCode() string }
	if errors.As(err, &answer) {
		return answer.ErrorCode(), false
	}
	if match := ofMessages.FindStringSubmatch(err.Error()); match != nil {
		return match[1], true
	}
	return "", false
}
