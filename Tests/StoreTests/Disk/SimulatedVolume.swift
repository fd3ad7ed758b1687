import Glibc
import Ground
import Store
import Synchronization

/// A directory in memory whose disk may fail and lose its power.
///
/// Writes are visible at once and durable once their file is synced; names are durable once the
/// volume is synced. Operations that change the disk are counted from 0.
final class SimulatedVolume: DiskVolume {
    /// The faults to inject.
    struct Faults {
        /// The numbers of the operations that fail; the first of them, if a write, is half done.
        var operations = Int.max..<Int.max
        /// The error code of the failures.
        var code = EIO
        /// The only kind of operation that fails; `nil` for any.
        var call: String?
        /// The ranges of files that cannot be read.
        var unreadable: [String: Range<UInt64>] = [:]
        /// The names of the files that cannot be opened.
        var unopenable: Set<String> = []
        /// True if the page cache has everything; otherwise it has nothing.
        var isCached = true
    }

    /// The content of a file, whatever its name.
    struct Content {
        /// The bytes that a reader sees, and those that are durable.
        var seen: [UInt8] = []
        var durable: [UInt8] = []
        var pending: [Change] = []
    }

    /// A change of the content that is not durable yet.
    enum Change {
        case bytes([UInt8], at: Int)
        case size(Int)
    }

    /// A change of names that is not durable yet; changes become durable in order.
    enum Naming {
        case link(String, Int)
        case unlink(String)
        case rename(String, to: String)
    }

    struct State {
        var contents: [Content] = []
        var names: [String: Int] = [:]
        var durableNames: [String: Int] = [:]
        var namings: [Naming] = []
        var faults = Faults()
        var operations = 0
        var peakBytes: UInt64 = 0
    }

    let state: Mutex<State>
    let path = "/simulated"
    /// The action to run between a reader's look-up and its read, once.
    private let interruption = Mutex<Interruption?>(nil)

    /// Runs on the reader's thread, while the thread that requested it waits.
    private struct Interruption: @unchecked Sendable {
        let work: () -> Void
    }

    private init(_ state: State) {
        self.state = Mutex(state)
    }

    convenience init() {
        self.init(State())
    }

    /// A copy of the volume in the same state.
    func copy() -> SimulatedVolume {
        SimulatedVolume(state.withLock { $0 })
    }

    func edit<Value>(_ change: (inout Faults) -> Value) -> Value {
        state.withLock { change(&$0.faults) }
    }

    /// The number of operations so far.
    var operations: Int { state.withLock { $0.operations } }

    /// The peak of the bytes used by all files, in whole blocks.
    var peakBytes: UInt64 { state.withLock { $0.peakBytes } }

    /// Restarts the measurement of the peak.
    func forgetPeak() {
        state.withLock { state in
            state.peakBytes = 0
            state.measure()
        }
    }

    /// Runs `work` before the next read of a file.
    func beforeNextRead(_ work: @escaping () -> Void) {
        let next = Interruption(work: work)
        interruption.withLock { $0 = next }
    }

    func interrupt() {
        let next = interruption.withLock { $0.take() }
        next?.work()
    }

    // MARK: Events

    /// Ends the process; what it wrote stays.
    func kill() {
        state.withLock { $0.kill() }
    }

    /// Cuts the power: each sector of each unsynced write survives or not.
    func losePower(using dice: inout SplitMix64) {
        state.withLock { state in
            for index in state.contents.indices { state.contents[index].losePower(using: &dice) }
            let count = Int.random(in: 0...state.namings.count, using: &dice)
            for naming in state.namings.prefix(count) { naming.apply(to: &state.durableNames) }
            state.names = state.durableNames
            state.kill()
        }
    }

    /// The bytes of a file; empty if there is none.
    func bytes(of name: String) -> [UInt8] {
        state.withLock { state in state.names[name].map { state.contents[$0].seen } ?? [] }
    }

    /// Replaces the content of a file.
    func replace(_ name: String, with bytes: [UInt8]) {
        state.withLock { state in
            guard let file = state.names[name] else { return }
            state.contents[file].seen = bytes
            state.contents[file].durable = bytes
            state.contents[file].pending = []
        }
    }

    /// Flips the bits of `mask` in one byte.
    func flip(_ name: String, at position: Int, mask: UInt8) {
        state.withLock { state in
            guard let file = state.names[name] else { return }
            state.contents[file].seen[position] ^= mask
            state.contents[file].durable[position] ^= mask
        }
    }
}

extension SimulatedVolume.Naming {
    func apply(to names: inout [String: Int]) {
        switch self {
        case .link(let name, let file): names[name] = file
        case .unlink(let name): names[name] = nil
        case .rename(let name, let new): names[new] = names.removeValue(forKey: name)
        }
    }
}

extension SimulatedVolume.Content {
    /// The unit in which a disk writes.
    private static let sectorBytes = 512

    mutating func change(_ change: SimulatedVolume.Change) {
        Self.apply(change, to: &seen)
        pending.append(change)
    }

    mutating func sync() {
        for change in pending { Self.apply(change, to: &durable) }
        pending = []
    }

    mutating func losePower(using dice: inout SplitMix64) {
        for change in pending {
            let fate = Int.random(in: 0..<3, using: &dice)
            guard case .bytes(let bytes, let offset) = change else {
                if fate > 0 { Self.apply(change, to: &durable) }
                continue
            }
            var start = 0
            while start < bytes.count {
                let end = min(
                    bytes.count, start + Self.sectorBytes - (offset + start) % Self.sectorBytes)
                if fate == 1 || fate == 2 && Bool.random(using: &dice) {
                    Self.apply(.bytes(Array(bytes[start..<end]), at: offset + start), to: &durable)
                }
                start = end
            }
        }
        seen = durable
    }

    private static func apply(_ change: SimulatedVolume.Change, to file: inout [UInt8]) {
        switch change {
        case .size(let size) where size < file.count: file.removeLast(file.count - size)
        case .size(let size): file += zeros(size - file.count)
        case .bytes(let bytes, let offset):
            let end = offset + bytes.count
            if end > file.count { apply(.size(end), to: &file) }
            file.replaceSubrange(offset..<end, with: bytes)
        }
    }

    /// Zeros in one step: files are created and truncated many thousand times, and byte by byte
    /// that would take most of the time of these tests.
    private static func zeros(_ count: Int) -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: count) { bytes, initialized in
            unsafe bytes.initialize(repeating: 0)
            initialized = count
        }
    }
}

extension SimulatedVolume.State {
    /// Drops pending work, faults and counts.
    mutating func kill() {
        for index in contents.indices {
            contents[index].durable = contents[index].seen
            contents[index].pending = []
        }
        durableNames = names
        namings = []
        faults = .init()
        operations = 0
        peakBytes = 0
        measure()
    }

    mutating func measure() {
        let bytes = names.values.reduce(UInt64(0)) {
            $0 + UInt64((contents[$1].seen.count + 4095) / 4096 * 4096)
        }
        peakBytes = max(peakBytes, bytes)
    }

    /// Counts an operation and throws if it is to fail; true for the first that fails.
    mutating func begin(_ call: String, _ path: String) throws(DiskFile.Failure) {
        let number = operations
        operations += 1
        guard isFaulty(number, call) else { return }
        throw DiskFile.Failure(call, path, code: faults.code)
    }

    func isFaulty(_ number: Int, _ call: String) -> Bool {
        faults.operations.contains(number) && faults.call ?? call == call
    }
}
