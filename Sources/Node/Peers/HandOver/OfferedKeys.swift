import Ground
import HTTPRules
import Synchronization

/// The keys of what was offered from memory: who asks for it knows half of its name alone, by which
/// memory finds nothing.
///
/// Bounded: of too many the oldest are forgotten, and who asks for those is told that they are not
/// there.
final class OfferedKeys: Sendable {
    private struct State {
        var keys: [EntryDigest: [UInt8]] = [:]
        /// In the order in which they came; those before ``oldest`` are gone.
        var order: [EntryDigest] = []
        var oldest = 0
        var bytes = 0
    }

    private let state = Mutex(State())

    /// Keys that are known at once.
    static let keysMax = 16_384

    /// Bytes of keys that are known at once.
    private static let bytesMax = 4 << 20

    func record(_ digest: EntryDigest, _ key: [UInt8]) {
        state.withLock { state in
            guard state.keys.updateValue(key, forKey: digest) == nil else { return }
            state.bytes += key.count
            state.order.append(digest)
            while state.keys.count > Self.keysMax || state.bytes > Self.bytesMax {
                let gone = state.keys.removeValue(forKey: state.order[state.oldest])
                state.bytes -= gone?.count ?? 0
                state.oldest += 1
            }
            guard state.oldest > state.order.count / 2 else { return }
            state.order.removeFirst(state.oldest)
            state.oldest = 0
        }
    }

    func find(_ digest: EntryDigest) -> [UInt8]? {
        state.withLock { $0.keys[digest] }
    }
}
