import Certificates
import Ground
import NIOCore
import Testing
import Wire

@Suite struct RecordTests {
    /// The plaintext bytes of each record in `ciphertext`; TLS 1.3 adds a content type and a tag.
    private func records(_ ciphertext: [UInt8]) -> [Int] {
        var sizes: [Int] = []
        var rest = ciphertext[...]
        while let first = rest.first {
            #expect(first == 23)
            let size = Int(rest[rest.startIndex + 3]) << 8 + Int(rest[rest.startIndex + 4])
            sizes.append(size - 17)
            rest = rest.dropFirst(5 + size)
        }
        return sizes
    }

    private func bytes(_ count: Int) -> ByteBuffer {
        ByteBuffer(bytes: (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) })
    }

    private func open() throws -> Pair {
        let pair = try pair().run()
        pair.server.sent = []
        return pair
    }

    /// A pair whose server has already written its ten small records.
    private func grown() throws -> Pair {
        let pair = try open()
        pair.server.session.write(bytes(13_700), now: noon)
        pair.run()
        #expect(records(pair.server.sent) == Array(repeating: 1370, count: 10))
        pair.server.sent = []
        pair.client.data = []
        return pair
    }

    private func bytes(of pieces: [ByteBuffer]) -> [UInt8] {
        pieces.flatMap { Array($0.readableBytesView) }
    }

    @Test("The first ten records fit into a TCP segment each, later ones have the maximum size")
    func sizes() throws {
        let pair = try open()
        let body = bytes(100_000)
        pair.server.session.write(body, now: noon)
        pair.run()
        let expected =
            Array(repeating: 1370, count: 10) + Array(repeating: 16384, count: 5) + [4380]
        #expect(records(pair.server.sent) == expected)
        #expect(pair.client.data == Array(body.readableBytesView))
    }

    @Test("After a pause of a second records are small again")
    func pause() throws {
        let pair = try grown()
        for (now, expected) in [
            (noon + .milliseconds(999), [5000]),
            (noon + .milliseconds(1998), [5000]),
            (noon + .milliseconds(2998), [1370, 1370, 1370, 890]),
        ] {
            pair.server.session.write(bytes(5000), now: now)
            pair.run()
            #expect(records(pair.server.sent) == expected)
            pair.server.sent = []
        }
    }

    @Test(
        "Small pieces share a record, and a full record is not copied",
        arguments: [
            ([100, 200], [300]), ([300, 10_000], [10_300]), ([10_000, 10_000], [16_384, 3616]),
            ([300, 16_384], [300, 16_384]), ([300, 40_000], [300, 16_384, 16_384, 7232]),
            ([40_000, 300], [16_384, 16_384, 7532]), ([0, 5, 0], [5]), ([], []), ([0, 0], []),
            ([16_384, 16_384], [16_384, 16_384]), ([1, 16_383, 1], [16_384, 1]),
            ([20_000, 20_000], [16_384, 3616, 16_384, 3616]),
            ([16_383, 16_383, 2], [16_384, 16_384]),
        ])
    func gathered(pieces: [Int], expected: [Int]) throws {
        let pair = try grown()
        let plaintext = pieces.map { bytes($0) }
        pair.server.session.write(plaintext, now: noon)
        pair.run()
        #expect(records(pair.server.sent) == expected)
        #expect(pair.client.data == bytes(of: plaintext))
    }

    @Test("The first small records are combined as well")
    func gatheredSmall() throws {
        let pair = try open()
        let plaintext = [300, 1500, 20_000, 7].map { bytes($0) }
        pair.server.session.write(plaintext, now: noon)
        pair.run()
        #expect(
            records(pair.server.sent) == [1370, 430] + Array(repeating: 1370, count: 8) + [9047])
        #expect(pair.client.data == bytes(of: plaintext))
    }

    @Test("A key is updated after its maximum number of records")
    func renewal() throws {
        let pair = try grown()
        pair.server.session.recordsPerKeyMax = 2
        pair.server.session.write(bytes(65_536), now: noon)
        pair.server.session.write(bytes(100), now: noon)
        pair.run()
        // A KeyUpdate has five bytes; the first key has written ten records before.
        #expect(records(pair.server.sent) == [16_384, 5, 16_384, 16_384, 5, 16_384, 100])
        #expect(pair.client.data.count == 65_636)
        #expect(pair.client.failure == nil)
    }

    @Test("Received data is delivered in pieces of 16 KiB")
    func pieces() throws {
        let pair = try grown()
        let output = try #require(written(pair.server.session, count: 50_000))
        pair.client.pieces = []
        pair.client.session.receive(output)
        pair.client.drain()
        #expect(pair.client.pieces == [16_384, 16_384, 16_384, 848])
        // Many small records at once are one piece.
        for _ in 0..<50 { pair.server.session.write(bytes(100), now: noon) }
        let small = try #require(pair.server.session.takeOutput())
        pair.client.pieces = []
        pair.client.session.receive(small)
        pair.client.drain()
        #expect(pair.client.pieces == [5000])
    }

    private func written(_ session: TLSSession, count: Int) -> ByteBuffer? {
        session.write(bytes(count), now: noon)
        return session.takeOutput()
    }

    @Test("The sessions of a loop share an output buffer, unless it is still held")
    func buffers() throws {
        let buffers = TLSBufferPool()
        let server = try TLSServerContext(TLSServerSettings(.exampleLeaf))
        let client = try TLSClientContext(TLSClientSettings(trusting: .authority))
        let pairs = (0..<2).map { _ in
            Pair(
                client: TLSSession(client, to: .name("a.example"), buffers: buffers),
                server: TLSSession(server, buffers: buffers))
        }
        for pair in pairs { pair.run() }
        func address(_ buffer: ByteBuffer?) -> UInt {
            unsafe buffer?.withUnsafeReadableBytes { UInt(bitPattern: $0.baseAddress) } ?? 0
        }
        let first = address(written(pairs[0].server.session, count: 1000))
        let second = address(written(pairs[1].server.session, count: 1000))
        #expect(first == second && first != 0)
        let held = written(pairs[0].server.session, count: 1000)
        let copy = held.map { Array($0.readableBytesView) }
        let other = written(pairs[1].server.session, count: 1000)
        #expect(address(held) != address(other))
        #expect(held.map { Array($0.readableBytesView) } == copy)
        // Two that write at the same time do not share.
        pairs[0].server.session.write(bytes(10), now: noon)
        pairs[1].server.session.write(bytes(10), now: noon)
        pairs[0].server.sent = []
        #expect(records(pairs[0].server.take()) == [10])
        #expect(records(pairs[1].server.take()) == [10])
    }
}
