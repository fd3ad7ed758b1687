import Admin
import FoundationEssentials
import Glibc
import Telemetry

/// The outcome of a command, which determines the exit status.
package enum CommandOutcome: CaseIterable, Sendable {
    case succeeded
    /// The node has refused the request, or the requested item does not exist.
    case refused
    /// The command line is invalid.
    case usageError
    /// No node has responded.
    case unavailable
    /// The operation continues, but was not complete in time.
    case incomplete
    /// The settings do not name a usable node or token.
    case misconfigured
    /// A check has found a condition that needs attention soon.
    case stateWarning
    /// A check has found a condition that affects clients.
    case stateCritical
    /// A check could not find out the state.
    case stateUnknown

    /// The exit status, from sysexits(3) where it has one; those of a check
    /// are from the guidelines for monitoring plugins.
    package var exitStatus: CInt {
        switch self {
        case .succeeded: 0
        case .refused: 1
        case .usageError: EX_USAGE
        case .unavailable: EX_UNAVAILABLE
        case .incomplete: EX_TEMPFAIL
        case .misconfigured: EX_CONFIG
        case .stateWarning: 1
        case .stateCritical: 2
        case .stateUnknown: 3
        }
    }
}

/// The reason why a command has failed.
package struct CommandError: Error, Hashable {
    /// The outcome that the failure leads to.
    package let outcome: CommandOutcome
    /// The reason in one line, for the operator.
    package let text: String

    /// Creates an error from its parts.
    init(_ ending: CommandOutcome, _ text: String) {
        self.outcome = ending
        self.text = text
    }

    /// Creates the error for a failed exchange; `timeout` is the limit for all of it, as the
    /// operator wrote it.
    init(_ failure: ExchangeError, url: String, timeout: String) {
        let why =
            switch failure {
            case .timedOut: " did not respond within \(timeout)"
            case .system(let code): ": \(unsafe String(cString: strerror(code)))"
            case .unresolved(let why): ": the name cannot be resolved (\(why))"
            case .malformed: ": it is not a Nuthatch node"
            case .incompleteResponse: ": the response was truncated"
            case .responseTooLarge(let bytesMax): ": the response is larger than \(bytesMax) bytes"
            case .tls(let failure): ": \(failure.commandText)"
            }
        self.init(.unavailable, url + why)
    }

    /// Creates the error for a response with an error status.
    init(_ response: NodeResponse, url: String) {
        let reason = response.problem.message
        let words = reason.isEmpty ? "" : " \(reason)"
        self.init(.refused, "\(url) answered \(response.status)\(words)")
    }

    /// Returns the error for a text that is not an absolute URL; `place` says where it was given,
    /// `note` what else is required.
    static func notURL(_ text: String, in place: String = "", note: String = "") -> CommandError {
        CommandError(
            .usageError,
            "\(place)\(text.quoted()) is not a URL; allowed: http://… or https://…\(note)")
    }
}

extension NodeResponse {
    /// The problem that the body of an error response describes, or the beginning of a body that is
    /// not a problem document.
    var problem: ReceivedProblem {
        (try? JSONDecoder().decode(ReceivedProblem.self, from: Data(body)))
            ?? ReceivedProblem(ofText: body)
    }
}
