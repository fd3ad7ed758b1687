import Glibc
import Ground
import Telemetry

/// What a node on this machine says of itself, asked for once over a connection of its own.
package struct HealthCheck: Hashable, Sendable {
    /// True only if it said 200.
    package let isReady: Bool
    /// What was asked, and what came; one line.
    package let line: String

    /// Asks the node that would run with these settings.
    ///
    /// `timeout`, as an operator writes it, is for all of it.
    package static func of(_ sources: ConfigurationSources, timeout: String) -> HealthCheck {
        guard let limit = DurationText.parse(timeout), limit > .zero else {
            return HealthCheck(
                isReady: false, line: "--timeout: \(timeout.quoted()) is not a duration, e.g. 3s")
        }
        do throws(ConfigurationFaults) {
            guard let address = try sources.healthAddress() else {
                return HealthCheck(
                    isReady: false,
                    line: "this node has no port in clear text, or the kernel chooses it (port "
                        + "0), so there is none to ask; give admin-listen or plain-listen a port")
            }
            return ask(address.reachable, within: limit, as: timeout)
        } catch {
            return HealthCheck(isReady: false, line: error.first.description)
        }
    }

    private static func ask(
        _ address: ListenAddress, within limit: Interval, as timeout: String
    ) -> HealthCheck {
        let url = "http://\(address)/readyz"
        do throws(AskingFailure) {
            let request = "GET /readyz HTTP/1.1\r\nHost: \(address)\r\nConnection: close\r\n\r\n"
            let answer = try AskingSocket(address, until: SystemClock.now() + limit)
                .exchange(Array(request.utf8), answerBytesMax: 16 << 10)
            guard let status = status(answer) else {
                return HealthCheck(isReady: false, line: "\(url): what answered is not a node")
            }
            let text = String(decoding: answer, as: UTF8.self)
            let state = text.split(separator: "\r\n\r\n", maxSplits: 1).dropFirst().first ?? ""
            let shown = state.filter { !$0.isNewline }.prefix(80)
            return HealthCheck(
                isReady: status == 200,
                line: "\(url) answered \(status) \(String(shown).onOneLine)")
        } catch {
            switch error {
            case .timedOut:
                return HealthCheck(isReady: false, line: "\(url) did not answer within \(timeout)")
            case .system(let code):
                let why = unsafe String(cString: strerror(code))
                return HealthCheck(isReady: false, line: "\(url): \(why)")
            }
        }
    }

    /// The three digits of the status line (RFC 9112 §4); nil if it is none.
    static func status(_ answer: [UInt8]) -> Int? {
        let start = Array("HTTP/1.1 ".utf8)
        guard answer.starts(with: start), answer.count >= start.count + 3 else { return nil }
        let digits = answer[start.count..<start.count + 3]
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(String(decoding: digits, as: UTF8.self))
    }
}

extension ListenAddress {
    /// What to connect to from the same machine: an address that means all of them is asked on
    /// loopback.
    var reachable: ListenAddress {
        switch address {
        case .v4(0): ListenAddress(address: .v4(0x7F00_0001), port: port)
        case .v6(0): ListenAddress(address: .v6(1), port: port)
        default: self
        }
    }
}
