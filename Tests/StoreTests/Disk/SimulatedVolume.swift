import Glibc
import Ground
import Store
import Synchronization

/// A directory in memory whose disk may fail, and may lose its power.
///
/// What is written is seen at once and is on the disk once its file is synced; names are on the
/// disk once the volume is. Operations that change the disk are counted, from 0.
final class SimulatedVolume: DiskVolume {
    /// What is made to go wrong.
    struct Faults {
        /// The operations that fail; of a write the first of them does the first half.
        var operations = Int.max..<Int.max
        /// Why they do.
        var code = EIO
        /// Only operations of this kind fail; nil for any.
        var call: String?
        /// Where a file cannot be read.
        var unreadable: [String: Range<UInt64>] = [:]
        /// Files that cannot be opened.
        var unopenable: Set<String> = []
        /// What the page cache holds: everything or nothing.
        var isCached = true
    }

    /// One file, whatever it is called.
    struct Content {
        /// What a reader sees, and what is on the disk for certain.
        var seen: [UInt8] = []
        var durable: [UInt8] = []
        var pending: [Change] = []
    }

    /// What has yet to come to the disk.
    enum Change {
        case bytes([UInt8], at: Int)
        case size(Int)
    }

    /// A change of names has yet to come to the disk; they come in their order.
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
    /// What happens between a reader's look-up and its read, once.
    private let interruption = Mutex<Interruption?>(nil)

    /// Done on the thread of the reader, which the one who asked for it waits for.
    private struct Interruption: @unchecked Sendable {
        let work: () -> Void
    }

    private init(_ state: State) {
        self.state = Mutex(state)
    }

    convenience init() {
        self.init(State())
    }

    /// Another volume in the same state.
    func copy() -> SimulatedVolume {
        SimulatedVolume(state.withLock { $0 })
    }

    func edit<Value>(_ change: (inout Faults) -> Value) -> Value {
        state.withLock { change(&$0.faults) }
    }

    /// Operations so far.
    var operations: Int { state.withLock { $0.operations } }

    /// The most that all files together have taken, in whole blocks.
    var peakBytes: UInt64 { state.withLock { $0.peakBytes } }

    /// From here on the peak is measured anew.
    func forgetPeak() {
        state.withLock { state in
            state.peakBytes = 0
            state.measure()
        }
    }

    /// Does `work` before the next read of a file reads anything.
    func beforeNextRead(_ work: @escaping () -> Void) {
        let next = Interruption(work: work)
        interruption.withLock { $0 = next }
    }

    func interrupt() {
        let next = interruption.withLock { $0.take() }
        next?.work()
    }

    // MARK: What happens to it

    /// The process is gone; what it wrote stays.
    func kill() {
        state.withLock { $0.kill() }
    }

    /// The power fails and comes back: each sector of each write that was not synced is there or
    /// not.
    func losePower(using dice: inout SplitMix64) {
        state.withLock { state in
            for index in state.contents.indices { state.contents[index].losePower(using: &dice) }
            let count = Int.random(in: 0...state.namings.count, using: &dice)
            for naming in state.namings.prefix(count) { naming.apply(to: &state.durableNames) }
            state.names = state.durableNames
            state.kill()
        }
    }

    /// The bytes of a file, or none.
    func bytes(of name: String) -> [UInt8] {
        state.withLock { state in state.names[name].map { state.contents[$0].seen } ?? [] }
    }

    /// Puts `bytes` in place of what the file holds.
    func replace(_ name: String, with bytes: [UInt8]) {
        state.withLock { state in
            guard let file = state.names[name] else { return }
            state.contents[file].seen = bytes
            state.contents[file].durable = bytes
            state.contents[file].pending = []
        }
    }

    /// Flips the lowest bits of a byte that `mask` names.
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
    /// A disk writes whole sectors.
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

    /// Filled as one: files are made and cut many thousand times, and byte by byte that takes most
    /// of the time of these tests.
    private static func zeros(_ count: Int) -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: count) { bytes, initialized in
            unsafe bytes.initialize(repeating: 0)
            initialized = count
        }
    }
}

extension SimulatedVolume.State {
    /// Nothing is pending, nothing is faulty, nothing was done.
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

    /// Counts an operation and fails if it is one that is to fail; true for the first of them.
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
