import Foundation
import Ground
import NIOCore
import Store
import Testing
import Tiers

/// True if the system reports what is in its page cache; otherwise no file is sent from it.
private let reportsPageCache: Bool = {
    let root = TemporaryDirectory()
    try? FileManager.default.createDirectory(
        atPath: root.path, withIntermediateDirectories: true)
    guard let file = try? DiskFile(root.path + "/file", creates: true),
        (try? file.write([1, 2, 3].span, at: 0)) != nil
    else { return false }
    return file.isCached(3, at: 0)
}()

@Suite("Sending a record from its file", .enabled(if: reportsPageCache))
struct SendingTests {
    private let root = TemporaryDirectory()
    private let log: DiskLog
    private let ends: Ends
    private let now: Int64 = 1_795_000_000_000
    private let answer = Answer(1, version: 1, bytes: 90_000)
    private var checked = VerifiedRecordCache()

    /// A connected pair of sockets whose send buffer holds a whole record.
    private struct Ends {
        let near: CInt
        let far: CInt

        init() {
            var ends: [CInt] = [0, 0]
            let made = unsafe socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends)
            precondition(made == 0, "no sockets")
            (near, far) = (ends[0], ends[1])
            var bytes: CInt = 1 << 20
            unsafe setsockopt(
                near, SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<CInt>.size))
        }

        func receive(_ count: Int) -> [UInt8] {
            unsafe [UInt8](unsafeUninitializedCapacity: count) { room, done in
                while done < count, let base = room.baseAddress {
                    let got = unsafe read(far, base + done, count - done)
                    guard got > 0 else { return }
                    done += got
                }
            }
        }

        func close() {
            Glibc.close(near)
            Glibc.close(far)
        }
    }

    init() throws {
        let plan = try LogRig.plan(segments: 6)
        let directory = try NodeDirectory(
            below: root.path, newID: { _ in NodeID(low: 1, high: 2) }, wall: now
        ) { _ in UInt64(plan.segmentBytes) }
        log = try DiskLog.open(
            directory,
            .init(
                plan: plan, ageLimit: .seconds(1_000_000), keys: (3, 4), random: SplitMix64(seed: 5)
            ),
            directory.identity, counters: DiskCounters(), formerWall: 0, now: now
        ) { _ in }
        ends = Ends()
        try store(answer)
        var room = [UInt8](repeating: 0, count: DiskView.bufferBytes)
        let found = log.view.readNonblocking(Answer.name(1), key: Answer.key(1), buffer: &room)
        guard case .complete(let reading, _) = found else { throw DiskFormatError.truncated }
        checked.add(reading, now: .zero)
    }

    private func store(_ response: Answer) throws {
        _ = try log.store(
            response.record(version: log.view.version, now: now), body: response.pieces, now: now)
    }

    private func head(of number: Int = 1, at now: Instant = .zero) -> DiskRecordHandle? {
        var room = [UInt8](repeating: 0, count: DiskView.bufferBytes)
        return log.view.readHead(
            Answer.name(number), key: Answer.key(number), verified: checked, buffer: &room, now: now
        )
    }

    @Test("A recently verified record is sent from its file until the verification expires")
    func sent() throws {
        defer { ends.close() }
        try store(Answer(2, version: 1, bytes: 5_000))
        let reading = try #require(head())
        #expect(reading.record.head == answer.head)
        #expect(log.view.send(reading, to: ends.near) == answer.body.count)
        let isWhole = ends.receive(answer.body.count) == answer.body
        #expect(isWhole)
        let last = Instant.zero + VerifiedRecordCache.verificationLifetime
        #expect(head(at: last - Interval.milliseconds(1)) != nil)
        #expect(head(at: last) == nil)
        #expect(head(of: 2) == nil, "it was never read")
    }

    @Test("A newer response or a purge prevents sending")
    func replaced() throws {
        defer { ends.close() }
        try store(Answer(1, version: 2, bytes: 90_000))
        #expect(head() == nil)
        _ = log.marks.apply([Answer.target(1)], isSoft: false, now: .zero)
        #expect(head() == nil)
    }

    @Test("Bytes still to be sent are not overwritten when their segment is reused")
    func reused() throws {
        defer { ends.close() }
        let reading = try #require(head())
        #expect(log.view.send(reading, to: ends.near) == answer.body.count)
        for number in 100..<130 where log.view.isCurrent(reading) {
            try store(Answer(number, version: 1, bytes: 300_000))
        }
        for number in 200..<220 { try store(Answer(number, version: 1, bytes: 300_000)) }
        #expect(!log.view.isCurrent(reading))
        let isWhole = ends.receive(answer.body.count) == answer.body
        #expect(isWhole)
        #expect(log.view.send(reading, to: ends.near) == 0)
    }

    @Test("A socket that accepts no more bytes has received the right ones")
    func refused() throws {
        defer { ends.close() }
        let reading = try #require(head())
        _ = fcntl(ends.near, F_SETFL, O_NONBLOCK)
        var taken = log.view.send(reading, to: ends.near)
        var last = taken
        while last == answer.body.count {
            last = log.view.send(reading, to: ends.near)
            taken += last
        }
        let bytes = ends.receive(taken)
        let isRight = zip(bytes.indices, bytes).allSatisfy {
            $1 == answer.body[$0 % answer.body.count]
        }
        #expect(isRight)
    }
}
