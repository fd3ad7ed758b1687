import Admin
import FoundationEssentials
import Glibc
import Ground
import Telemetry

/// Where a node is asked by operators.
enum OperatorPlace: Hashable {
    /// `tokenFile` holds what operators prove themselves with; nil if they need not.
    case address(ListenAddress, tokenFile: String?)
    /// Nowhere.
    case off
    /// It speaks TLS, with those alone who show a certificate.
    case wantsCertificate
    /// Its port is not known beforehand.
    case chosenByKernel
}

/// What a node of this machine makes of an operator's word, told over a connection of its own.
package struct OperatorCall: Hashable, Sendable {
    package enum Outcome: Hashable, Sendable {
        case done
        /// The node has answered, and says no.
        case refused
        /// There was no answer that a node gives.
        case unanswered
        /// The settings do not say where the node is.
        case misconfigured
    }

    package let outcome: Outcome
    /// What came of it, without the line's end; one line unless it is done.
    package let text: String

    private init(_ outcome: Outcome, _ text: String) {
        self.outcome = outcome
        self.text = text
    }

    // MARK: Calls

    /// Asks who is in the cluster: a table, or the node's own JSON.
    ///
    /// `timeout`, as an operator writes it, is for all of it.
    package static func members(
        _ sources: ConfigurationSources, timeout: String, asJSON: Bool
    ) -> OperatorCall {
        call("GET", AdminOperation.row(.listMembers).path, sources, timeout: timeout) { body in
            guard let rows = try? JSONDecoder().decode(MemberRow.Page.self, from: Data(body))
            else { return nil }
            let text = String(decoding: body, as: UTF8.self)
            return asJSON ? String(text.dropLast(text.hasSuffix("\n") ? 1 : 0)) : rows.table
        }
    }

    /// Has the node begin to count a member no longer.
    package static func forget(
        _ member: String, _ sources: ConfigurationSources, timeout: String
    ) -> OperatorCall {
        let path = "\(AdminOperation.row(.listMembers).path)/\(member)/forget"
        return call("POST", path, sources, timeout: timeout) { _ in "forgetting \(member)" }
    }

    /// True if a member may be called so.
    package static func isMember(_ text: String) -> Bool { NodeID(text) != nil }

    // MARK: One request

    /// More than a page of the largest cluster.
    private static let answerBytesMax = 1 << 20

    /// `read` gives what is to be told of an answer, from its body; nil if no node gives such a
    /// one.
    private static func call(
        _ method: String, _ path: String, _ sources: ConfigurationSources, timeout: String,
        read: ([UInt8]) -> String?
    ) -> OperatorCall {
        guard let limit = DurationText.parse(timeout), limit > .zero else {
            return OperatorCall(
                .misconfigured, "--timeout: \(timeout.quoted()) is not a duration, e.g. 3s")
        }
        do throws(ConfigurationFaults) {
            switch try sources.operatorPlace() {
            case .address(let address, let tokenFile):
                let token: [UInt8]?
                do throws(ConfigurationError) {
                    token = try tokenFile.flatMap(strongestToken)
                } catch {
                    return OperatorCall(.misconfigured, error.description)
                }
                return ask(
                    method, path, of: address.reachable, token: token, within: limit, as: timeout,
                    read: read)
            case .off:
                return OperatorCall(.misconfigured, "admin-listen is off, so nobody can be asked")
            case .wantsCertificate:
                return OperatorCall(
                    .misconfigured,
                    "the admin port asks for a certificate (client-ca), and this command shows "
                        + "none; ask https://…\(path) with one")
            case .chosenByKernel:
                return OperatorCall(
                    .misconfigured,
                    "the kernel chooses the admin port (port 0); give admin-listen "
                        + "the one that the node's log names")
            }
        } catch {
            return OperatorCall(.misconfigured, error.first.description)
        }
    }

    /// The token in a node's file that is good for most.
    private static func strongestToken(_ file: String) throws(ConfigurationError) -> [UInt8]? {
        try ConfigurationSources.adminTokens(file).max { $0.role < $1.role }?.token
    }

    private static func ask(
        _ method: String, _ path: String, of address: ListenAddress, token: [UInt8]?,
        within limit: Interval, as timeout: String, read: ([UInt8]) -> String?
    ) -> OperatorCall {
        let url = "http://\(address)\(path)"
        do throws(AskingFailure) {
            let proof = token.map {
                "Authorization: Bearer \(String(decoding: $0, as: UTF8.self))\r\n"
            }
            let request =
                "\(method) \(path) HTTP/1.1\r\nHost: \(address)\r\nContent-Length: 0\r\n"
                + "\(proof ?? "")Connection: close\r\n\r\n"
            let answer = try AskingSocket(address, until: SystemClock.now() + limit)
                .exchange(Array(request.utf8), answerBytesMax: answerBytesMax)
            guard let status = HealthCheck.status(answer), let body = body(of: answer) else {
                return OperatorCall(.unanswered, "\(url): what answered is not a node")
            }
            guard (200..<300).contains(status) else {
                return OperatorCall(.refused, "\(url) answered \(status) \(reason(in: body))")
            }
            guard let text = read(body) else {
                return OperatorCall(.unanswered, "\(url): what answered is not a node")
            }
            return OperatorCall(.done, text)
        } catch {
            switch error {
            case .timedOut:
                return OperatorCall(.unanswered, "\(url) did not answer within \(timeout)")
            case .system(let code):
                let why = unsafe String(cString: strerror(code))
                return OperatorCall(.unanswered, "\(url): \(why)")
            }
        }
    }

    /// What follows the head; nil if that is not whole.
    private static func body(of answer: [UInt8]) -> [UInt8]? {
        answer.firstRange(of: Array("\r\n\r\n".utf8)).map { Array(answer[$0.upperBound...]) }
    }

    /// The sentences of a problem document (RFC 9457), on one line.
    static func reason(in body: [UInt8]) -> String {
        struct Problem: Decodable {
            var title: String
            var detail: String?
        }
        guard let problem = try? JSONDecoder().decode(Problem.self, from: Data(body)) else {
            return String(String(decoding: body, as: UTF8.self).prefix(80)).onOneLine
        }
        let detail = problem.detail.map { ": \($0)" } ?? ""
        return String((problem.title + detail).prefix(500)).onOneLine
    }
}
