import Admin
import Cluster
import Ground
import HTTPRules
import Origin
import Telemetry
import Wire

// Failures of origins.
extension Problem {
    /// Returns the problem of a failed fetch from the origin.
    ///
    /// - Parameters:
    ///   - failure: the failure.
    ///   - isValidation: true if the stored response must be validated, which yields 504 (RFC 9111
    ///     §5.2.2.2); `nil` is the same as false.
    /// - Returns: the problem, with the time to retry after in seconds if the failure has one.
    static func originFailed(_ failure: OriginFailure, isValidation: Bool? = nil) -> Problem {
        var problem = Problem(failure.problem)
        if isValidation == true, failure.side == .origin { problem.document.status = 504 }
        // Rounded up, because an earlier retry would be refused again.
        problem.retryAfterSeconds = failure.retryAfter.map {
            max(1, Int(($0 + .milliseconds(999)).seconds))
        }
        switch failure.underlying {
        case .circuitOpen: problem.counter = .refusedCircuit
        case .overloaded(.quota): problem.counter = .refusedShare
        case .overloaded: problem.counter = .refusedQueue
        default: break
        }
        return problem
    }

    /// Returns the problem of an image for which the origin sent a status other than 200.
    ///
    /// Client errors are passed on, except 407 and 408; others become 502.
    static func originStatus(_ status: UInt16) -> Problem {
        var problem = Problem(
            (400..<500).contains(status) && status != 407 && status != 408 ? status : 502,
            "origin-status", "The origin has no image for this URL",
            "The origin responded with status \(status).")
        problem.originStatus = status
        return problem
    }

    /// Returns the problem of an origin response whose Content-Type is not an image's.
    static func notAnImage(_ head: ResponseHead) -> Problem {
        let type = head.first(.contentType).map {
            String(decoding: head.bytes[$0.range], as: UTF8.self)
        }
        return Problem(
            502, "not-an-image", "The origin's response is not an image",
            type.map { "The origin's response has the Content-Type \($0)." }
                ?? "The origin's response has no Content-Type.")
    }

    /// Returns the problem of an image with too many pixels.
    ///
    /// Decoders allocate memory for all of them.
    static func imageTooLarge(_ size: PixelSize, pixelsMax: UInt64) -> Problem {
        Problem(
            502, "image-too-large", "The image has too many pixels",
            "The origin's image has \(size.width) x \(size.height) pixels; "
                + "at most \(pixelsMax) are served.")
    }

    /// Problem of an image whose Content-Encoding hides its first bytes, which show type and size.
    static let encodedImage = Problem(
        502, "image-coded", "The image has a Content-Encoding",
        "The origin's response has a Content-Encoding, which hides the image's type and size; "
            + "the setting coded-images permits such images.")

    /// Problem of an image whose connection closed before the end that its format requires.
    static let incompleteImage = Problem(
        502, "origin-answer-truncated", "The image could not be fetched",
        "The origin closed the connection before the image was complete.")
}
