import Ground
package import HTTPRules
import Telemetry

extension PurgeOptions {
    /// What a request with the method PURGE says, whose field lines lie in `bytes`:
    /// `Nuthatch-PurgeEffect-Wait: all` and `Nuthatch-PurgeEffect-Timeout: 1s`.
    package init(
        _ lines: [FieldLine], in bytes: Span<UInt8>
    ) throws(PurgeError) {
        self.init()
        for line in lines {
            let text = String(decoding: bytes.copy(line.value.range), as: UTF8.self)
            if bytes.matchesIgnoringCase(Self.waitField, at: line.name.range) {
                guard wait == nil, let read = PurgeAcknowledgement(rawValue: text) else {
                    throw .invalidField(Self.waitField, allowed: PurgeAcknowledgement.allowed)
                }
                wait = read
            } else if bytes.matchesIgnoringCase(Self.timeoutField, at: line.name.range) {
                guard timeout == nil, let read = Self.timeout(text) else {
                    throw .invalidField(Self.timeoutField, allowed: Self.timeoutAllowed)
                }
                timeout = read
            }
        }
    }

    private static let waitField = "nuthatch-purge-wait"
    private static let timeoutField = "nuthatch-purge-timeout"
}
