package import Admin
import Ground
import Telemetry

/// The readiness of a node on this machine, from one request on a separate connection.
package struct HealthCheck: Hashable, Sendable {
    /// True only if the status was 200.
    package let isReady: Bool
    /// The request and its result in one line.
    package let line: String

    /// Requests `/readyz` of the node; `timeout`, as an operator writes it, limits all of it.
    ///
    /// Without a usable setting or a response the node counts as not ready.
    package static func run(_ node: LocalNode, timeout: String) -> HealthCheck {
        do throws(CommandError) {
            let limit = try CommandOptions.duration(timeout, "--timeout")
            guard let address = try CommandOptions.setting(node.healthAddress) else {
                return HealthCheck(
                    isReady: false,
                    line: "this node has no cleartext port, or the kernel chooses it (port 0); "
                        + "set the port of admin-listen or plain-listen")
            }
            return request(address.reachable, within: limit, as: timeout)
        } catch {
            return HealthCheck(isReady: false, line: error.text)
        }
    }

    /// Sends the request to `address`.
    private static func request(
        _ address: ListenAddress, within limit: Interval, as timeout: String
    ) -> HealthCheck {
        let place = NodeEndpoint(address)
        let url = "http://\(place)/readyz"
        do throws(ExchangeError) {
            let exchange = Exchange(
                NodeRequest("GET", "/readyz"), endpoint: place, by: place.resolved,
                until: BootClock.now() + limit, bodyBytesMax: 16 << 10)
            Exchange.advance([exchange])
            guard let response = try exchange.outcome?.get() else {
                preconditionFailure("\(url) is still being asked")
            }
            let state = String(decoding: response.body, as: UTF8.self)
            let shown = state.filter { !$0.isNewline }.prefix(80)
            return HealthCheck(
                isReady: response.status == 200,
                line: "\(url) answered \(response.status) \(String(shown).singleLine)")
        } catch {
            return HealthCheck(
                isReady: false, line: CommandError(error, url: url, timeout: timeout).text)
        }
    }
}

extension ListenAddress {
    /// The address to connect to from the same machine: loopback in place of an unspecified
    /// address.
    var reachable: ListenAddress {
        switch address {
        case .v4(0): ListenAddress(address: .v4(0x7F00_0001), port: port)
        case .v6(0): ListenAddress(address: .v6(1), port: port)
        default: self
        }
    }
}
