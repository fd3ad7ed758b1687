import Ground
import HTTPRules
import Synchronization

/// The keys of what was offered from memory: who asks for it knows half of its name alone, by which
/// memory finds nothing.
///
/// Bounded: of too many the oldest are forgotten, and who asks for those is told that they are not
/// there.
final class OfferedKeys: Sendable {
    struct OfferedKey: Sendable {
        let key: [UInt8]
        let negotiation: Negotiation
    }

    private struct State {
        var keys: [EntryDigest: OfferedKey] = [:]
        /// In the order in which they came, a ring of ``keysMax`` once that many were there.
        var order: [EntryDigest] = []
        var oldest = 0
    }

    private let state = Mutex(State())

    /// Keys that are known at once.
    static let keysMax = 16_384

    func note(_ digest: EntryDigest, _ key: OfferedKey) {
        state.withLock { state in
            guard state.keys.updateValue(key, forKey: digest) == nil else { return }
            guard state.order.count == Self.keysMax else { return state.order.append(digest) }
            state.keys[state.order[state.oldest]] = nil
            state.order[state.oldest] = digest
            state.oldest = (state.oldest + 1) % Self.keysMax
        }
    }

    func find(_ digest: EntryDigest) -> OfferedKey? {
        state.withLock { $0.keys[digest] }
    }
}
