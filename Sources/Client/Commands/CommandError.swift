import Admin
import FoundationEssentials
import Glibc

/// How a command has ended.
package enum CommandOutcome: CaseIterable, Sendable {
    case succeeded
    /// The node has answered, and says no; or what was asked for is not there.
    case refused
    /// The command line asks for what cannot be.
    case usageError
    /// There was no answer that a node gives.
    case unavailable
    /// It goes on, and was not over in time.
    case incomplete
    /// The settings do not say where the node is, or who asks.
    case misconfigured

    /// What sysexits(3) has for it.
    package var exitStatus: CInt {
        switch self {
        case .succeeded: 0
        case .refused: 1
        case .usageError: EX_USAGE
        case .unavailable: EX_UNAVAILABLE
        case .incomplete: EX_TEMPFAIL
        case .misconfigured: EX_CONFIG
        }
    }
}

/// Why a command has failed.
package struct CommandError: Error, Hashable {
    package let outcome: CommandOutcome
    /// For the operator, on one line.
    package let text: String

    init(_ ending: CommandOutcome, _ text: String) {
        self.outcome = ending
        self.text = text
    }

    /// `timeout` is what was given for the whole of it, as the operator wrote it.
    init(_ failure: ExchangeError, url: String, timeout: String) {
        let why =
            switch failure {
            case .timedOut: " did not answer within \(timeout)"
            case .system(let code): ": \(unsafe String(cString: strerror(code)))"
            case .unresolved(let why): ": the name leads nowhere (\(why))"
            case .malformed: ": what answered is not a node"
            case .incompleteResponse: ": the answer broke off"
            case .responseTooLarge(let bytesMax): ": the answer is larger than \(bytesMax) bytes"
            }
        self.init(.unavailable, url + why)
    }

    /// The node has said no.
    init(_ response: NodeResponse, url: String) {
        let reason = response.problem.message
        let words = reason.isEmpty ? "" : " \(reason)"
        self.init(.refused, "\(url) answered \(response.status)\(words)")
    }

    /// `url` was answered by something else.
    static func notNode(_ url: String) -> CommandError {
        CommandError(.unavailable, "\(url): what answered is not a node")
    }
}

extension NodeResponse {
    /// What an answer that refuses says of itself.
    var problem: ReceivedProblem {
        (try? JSONDecoder().decode(ReceivedProblem.self, from: Data(body)))
            ?? ReceivedProblem(ofText: body)
    }
}
