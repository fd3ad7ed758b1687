import Admin
import FoundationEssentials
import Glibc

/// How a command has ended.
package enum CommandEnding: CaseIterable, Sendable {
    case done
    /// The node has answered, and says no; or what was asked for is not there.
    case refused
    /// The command line asks for what cannot be.
    case misused
    /// There was no answer that a node gives.
    case unanswered
    /// It goes on, and was not over in time.
    case unfinished
    /// The settings do not say where the node is, or who asks.
    case misconfigured

    /// What sysexits(3) has for it.
    package var status: CInt {
        switch self {
        case .done: 0
        case .refused: 1
        case .misused: EX_USAGE
        case .unanswered: EX_UNAVAILABLE
        case .unfinished: EX_TEMPFAIL
        case .misconfigured: EX_CONFIG
        }
    }
}

/// Why a command has failed.
package struct CommandFault: Error, Hashable {
    package let ending: CommandEnding
    /// For the operator, on one line.
    package let text: String

    init(_ ending: CommandEnding, _ text: String) {
        self.ending = ending
        self.text = text
    }

    /// `timeout` is what was given for the whole of it, as the operator wrote it.
    init(_ failure: AskingFailure, asking url: String, within timeout: String) {
        let why =
            switch failure {
            case .timedOut: " did not answer within \(timeout)"
            case .system(let code): ": \(unsafe String(cString: strerror(code)))"
            case .unresolved(let why): ": the name leads nowhere (\(why))"
            case .malformed: ": what answered is not a node"
            case .brokenOff: ": the answer broke off"
            case .tooLarge(let bytesMax): ": the answer is larger than \(bytesMax) bytes"
            }
        self.init(.unanswered, url + why)
    }

    /// The node has said no.
    init(_ answer: Answer, asking url: String) {
        let reason = answer.problem.sentence
        let words = reason.isEmpty ? "" : " \(reason)"
        self.init(.refused, "\(url) answered \(answer.status)\(words)")
    }

    /// `url` was answered by something else.
    static func notNode(_ url: String) -> CommandFault {
        CommandFault(.unanswered, "\(url): what answered is not a node")
    }
}

extension Answer {
    /// What an answer that refuses says of itself.
    var problem: ProblemReport {
        (try? JSONDecoder().decode(ProblemReport.self, from: Data(body)))
            ?? ProblemReport(ofText: body)
    }
}
