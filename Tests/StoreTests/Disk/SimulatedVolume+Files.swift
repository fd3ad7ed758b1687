import Glibc
import Ground
import Store
import Synchronization

extension SimulatedVolume {
    func names() throws(DiskFile.Failure) -> [String] {
        state.withLock { $0.names.keys.sorted() }
    }

    func open(_ name: String, creates: Bool) throws(DiskFile.Failure) -> any VolumeFile {
        let file = try changing { state throws(DiskFile.Failure) in
            guard !state.faults.unopenable.contains(name) else {
                throw DiskFile.Failure("open", name, code: EMFILE)
            }
            if let file = state.names[name] { return file }
            guard creates else { throw DiskFile.Failure("open", name, code: ENOENT) }
            try state.begin("open", name)
            state.contents.append(Content())
            state.names[name] = state.contents.count - 1
            state.namings.append(.link(name, state.contents.count - 1))
            return state.contents.count - 1
        }
        return SimulatedFile(self, file, name)
    }

    func remove(_ name: String) throws(DiskFile.Failure) {
        try apply(.unlink(name), "remove", name)
    }

    func rename(_ name: String, to new: String) throws(DiskFile.Failure) {
        try apply(.rename(name, to: new), "rename", name)
    }

    private func apply(
        _ naming: Naming, _ call: String, _ name: String
    ) throws(DiskFile.Failure) {
        try changing { state throws(DiskFile.Failure) in
            try state.begin(call, name)
            guard state.names[name] != nil else {
                throw DiskFile.Failure(call, name, code: ENOENT)
            }
            naming.apply(to: &state.names)
            state.namings.append(naming)
        }
    }

    func sync() throws(DiskFile.Failure) {
        try changing { state throws(DiskFile.Failure) in
            try state.begin("sync", "/simulated")
            state.durableNames = state.names
            state.namings = []
        }
    }

    func check() throws(DiskFile.Failure) {}

    func allocatedBytes() -> UInt64 { peakBytes }

    /// Changes the state and updates the peak of used bytes.
    func changing<Value: Sendable>(
        _ change: (inout State) throws(DiskFile.Failure) -> Value
    ) throws(DiskFile.Failure) -> Value {
        try state.withLock { state throws(DiskFile.Failure) in
            defer { state.measure() }
            return try change(&state)
        }
    }
}

/// An open file of a ``SimulatedVolume``.
final class SimulatedFile: VolumeFile {
    private let volume: SimulatedVolume
    private let number: Int
    let path: String

    init(_ volume: SimulatedVolume, _ number: Int, _ path: String) {
        self.volume = volume
        self.number = number
        self.path = path
    }

    func size() throws(DiskFile.Failure) -> UInt64 {
        volume.state.withLock { UInt64($0.contents[number].seen.count) }
    }

    func allocate(_ bytes: UInt64) throws(DiskFile.Failure) {
        try volume.changing { state throws(DiskFile.Failure) in
            try state.begin("allocate", path)
            guard state.contents[number].seen.count < Int(bytes) else { return }
            state.contents[number].change(.size(Int(bytes)))
        }
    }

    func truncate(to bytes: UInt64) throws(DiskFile.Failure) {
        try volume.changing { state throws(DiskFile.Failure) in
            try state.begin("truncate", path)
            state.contents[number].change(.size(Int(bytes)))
        }
    }

    func write(_ bytes: Span<UInt8>, at offset: UInt64) throws(DiskFile.Failure) {
        let whole = bytes.copy(0..<bytes.count)
        try volume.changing { state throws(DiskFile.Failure) in
            let isFirst = state.operations == state.faults.operations.lowerBound
            do throws(DiskFile.Failure) { try state.begin("write", path) } catch {
                if isFirst {
                    let half = Array(whole.prefix(whole.count / 2))
                    state.contents[number].change(.bytes(half, at: Int(offset)))
                }
                throw error
            }
            state.contents[number].change(.bytes(whole, at: Int(offset)))
        }
    }

    func read(_ count: Int, at offset: UInt64) throws(DiskFile.Failure) -> [UInt8] {
        volume.interrupt()
        return try readNow(count, at: offset)
    }

    private func readNow(
        _ count: Int, at offset: UInt64
    ) throws(DiskFile.Failure) -> [UInt8] {
        try volume.state.withLock { state throws(DiskFile.Failure) in
            if let bad = state.faults.unreadable[path],
                bad.overlaps(offset..<offset + UInt64(count))
            {
                throw DiskFile.Failure("read", path, code: EIO)
            }
            let seen = state.contents[number].seen
            let start = min(Int(offset), seen.count)
            return Array(seen[start..<min(start + count, seen.count)])
        }
    }

    @unsafe func readNonblocking(
        at offset: UInt64, into room: UnsafeMutableRawBufferPointer
    ) throws(DiskFile.Failure) -> Bool {
        guard volume.edit({ $0.isCached }) else { return false }
        let bytes = try read(room.count, at: offset)
        guard bytes.count == room.count else { return false }
        unsafe room.copyBytes(from: bytes)
        return true
    }

    func sync() throws(DiskFile.Failure) {
        try volume.changing { state throws(DiskFile.Failure) in
            try state.begin("sync", path)
            state.contents[number].sync()
        }
    }
}
