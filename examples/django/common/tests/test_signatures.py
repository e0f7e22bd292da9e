"""Signatures, with those that the outbox's own tests expect."""
import unittest

from common.signatures import TOLERANCE, BadSignature, key_of, sign, verify

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + 8 * "AAEC"
BODY = b'{"test": 2432232314}'
NOW = 1614265330


def headers(secret=SECRET, at=NOW, **replaced):
    known = {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": str(at)}
    known["webhook-signature"] = sign(secret, known["webhook-id"], at, BODY)
    known.update({name.replace("_", "-"): value for name, value in replaced.items()})
    return known


class SignatureTest(unittest.TestCase):
    def test_the_example_of_standard_webhooks(self):
        self.assertEqual(headers()["webhook-signature"], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
        verify([SECRET], headers(), BODY, NOW)

    def test_a_change_of_secrets(self):
        """Either side may know the new one first."""
        verify([OTHER, SECRET], headers(), BODY, NOW)
        both = headers(OTHER)["webhook-signature"] + " " + headers()["webhook-signature"]
        verify([SECRET], headers(webhook_signature="v2,AAAA " + both), BODY, NOW)

    def test_time(self):
        for away in (-TOLERANCE, TOLERANCE):
            verify([SECRET], headers(at=NOW + away), BODY, NOW)
        for away in (-TOLERANCE - 1, TOLERANCE + 1):
            with self.assertRaisesRegex(BadSignature, "compare the clocks"):
                verify([SECRET], headers(at=NOW + away), BODY, NOW)

    def test_refused(self):
        right = headers()["webhook-signature"]
        for name, bad, body in [
            ("another secret", headers(OTHER), BODY),
            ("another body", headers(), BODY + b" "),
            ("another id", headers(webhook_id="msg_2"), BODY),
            ("another time", headers(webhook_timestamp=str(NOW + 1)), BODY),
            ("no signature", headers(webhook_signature=""), BODY),
            ("a part of it", headers(webhook_signature=right[:-10]), BODY),
            ("the wrong version", headers(webhook_signature=right.replace("v1,", "v1a,")), BODY),
            ("not ASCII", headers(webhook_signature="v1,\xe9"), BODY),
            ("no id", headers(webhook_id=""), BODY),
            ("no time", headers(webhook_timestamp=""), BODY),
            ("a time that is no number", headers(webhook_timestamp="\u0661"), BODY),
        ]:
            with self.subTest(name), self.assertRaises(BadSignature):
                verify([SECRET], bad, body, NOW)
        with self.assertRaises(BadSignature):
            verify([], headers(), BODY, NOW)

    def test_secrets(self):
        for bad in ("", "whsec_", "whsec_short", SECRET[6:], "whsec_" + SECRET, "whsec_" + 65 * "AAAA", "whsec_!" + SECRET[7:]):
            with self.subTest(bad), self.assertRaises(ValueError) as refused:
                key_of(bad)
            self.assertNotIn(SECRET[6:], str(refused.exception))
