import COpenSSL
import Certificates
import Ground
import NIOCore
import Testing
import Trials
import Wire

/// The observations of both ends of a conversation.
private struct Outcome: Equatable {
    var isEstablished: [Bool]
    var data: [[UInt8]]
    var isClosed: [Bool]
    var failures: [TLSFailure?]

    init(_ pair: Pair) {
        let ends = [pair.client, pair.server]
        isEstablished = ends.map { $0.parameters != nil }
        data = ends.map(\.data)
        isClosed = ends.map(\.isClosed)
        failures = ends.map(\.failure)
    }
}

@Suite("TLS does not depend on how bytes are split") struct DeliveryTests {
    private static func text(_ count: Int) -> ByteBuffer {
        ByteBuffer(bytes: (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    }

    /// A complete conversation: handshake, data both ways, the end of both.
    private func converse(_ pair: Pair, cut: () -> Int) -> Outcome {
        pair.run(cut: cut)
        if pair.client.failure == nil, pair.server.failure == nil {
            pair.client.session.write(Self.text(700), now: noon)
            pair.run(cut: cut)
            pair.server.session.write([Self.text(10), Self.text(20_000)], now: noon)
            pair.server.session.close()
            pair.run(cut: cut)
            pair.client.session.close()
            pair.run(cut: cut)
        }
        return Outcome(pair)
    }

    private func pairs() throws -> [Pair] {
        let secret = [UInt8](repeating: 7, count: 32)
        let peer = try TLSPeerContext(secrets: [secret])
        let stranger = try TLSPeerContext(secrets: [[UInt8](repeating: 8, count: 32)])
        return [
            try pair(),
            try pair(name: .name("b.example")),
            try pair {
                $0.protocols = [.http11]
            } client: {
                $0.protocols = [.http2]
            },
            try pair { $0.clientCAPEM = TestCertificate.authority.pem },
            Pair(
                client: TLSSession(peer: peer, dials: true),
                server: TLSSession(peer: peer, dials: false)),
            Pair(
                client: TLSSession(peer: peer, dials: true),
                server: TLSSession(peer: stranger, dials: false)),
        ]
    }

    @Test("Byte by byte and with random splits the outcome is the same")
    func splits() throws {
        let whole = try pairs().map { converse($0) { .max } }
        #expect(
            whole.map(\.isEstablished) == [
                [true, true], [false, false], [false, false], [true, false], [true, true],
                [false, false],
            ])
        #expect(whole[0].data[0].count == 20_010 && whole[0].data[1].count == 700)
        #expect(whole[0].isClosed == [true, true])
        let single = try pairs().map { converse($0) { 1 } }
        #expect(single == whole)
        for seed in 0..<20 as Range<UInt64> {
            var dice = SplitMix64(seed: seed)
            let cut = try pairs().map { pair in
                converse(pair) { Int.random(in: 1...400, using: &dice) }
            }
            #expect(cut == whole, "seed \(seed)")
        }
    }

    @Test("Many buffers before a read are like one")
    func queued() throws {
        let pair = try pair().run()
        pair.server.session.write(Self.text(50_000), now: noon)
        let bytes = pair.server.take()
        for start in stride(from: 0, to: bytes.count, by: 1000) {
            let piece = bytes[start..<min(start + 1000, bytes.count)]
            pair.client.session.receive(ByteBuffer(bytes: piece))
        }
        pair.client.session.receive(ByteBuffer())
        pair.client.drain()
        #expect(pair.client.data == Array(Self.text(50_000).readableBytesView))
    }

    @Test("Large bodies in both directions arrive whole")
    func transfer() throws {
        let pair = try pair().run()
        var dice = SplitMix64(seed: 5)
        var sent: [[UInt8]] = [[], []]
        for round in 0..<200 {
            for (number, end) in [pair.client, pair.server].enumerated() {
                let pieces = (0..<Int.random(in: 0...4, using: &dice)).map { _ in
                    let count = Int.random(in: 0...40_000, using: &dice)
                    return ByteBuffer(repeating: UInt8(truncatingIfNeeded: round), count: count)
                }
                end.session.write(pieces, now: noon + .milliseconds(Int64(round) * 100))
                for piece in pieces { sent[number] += piece.readableBytesView }
            }
            pair.run { Int.random(in: 1...30_000, using: &dice) }
        }
        #expect(pair.server.data == sent[0])
        #expect(pair.client.data == sent[1])
        #expect(pair.client.failure == nil && pair.server.failure == nil)
    }

    @Test("A changed byte anywhere fails one end, and is never delivered as data")
    func changed() throws {
        var dice = SplitMix64(seed: 9)
        for round in 0..<Trials.count(400) {
            let pair = try [self.pair13, self.pairOfPeers][round % 2]()
            var left = Int.random(in: 0..<1500, using: &dice)
            let mask = UInt8.random(in: 1...255, using: &dice)
            pair.run { 7000 }
            let isOpen = pair.client.parameters != nil
            #expect(isOpen)
            pair.server.session.write(Self.text(1000), now: noon)
            var bytes = pair.server.take()
            left %= bytes.count
            bytes[left] ^= mask
            pair.client.give(bytes)
            #expect(pair.client.data.isEmpty)
            // A longer length waits for more bytes.
            let isLonger = left == 3 || left == 4
            #expect(pair.client.failure != nil || isLonger, "byte \(left) with \(mask)")
        }
    }

    private func pair13() throws -> Pair { try pair() }

    private func pairOfPeers() throws -> Pair {
        let context = try TLSPeerContext(secrets: [[UInt8](repeating: 7, count: 32)])
        return Pair(
            client: TLSSession(peer: context, dials: true),
            server: TLSSession(peer: context, dials: false))
    }

    @Test("After a changed handshake both ends agree, or one of them fails")
    func changedHandshake() throws {
        var dice = SplitMix64(seed: 10)
        for round in 0..<Trials.count(600) {
            let pair = try [self.pair13, self.pairOfPeers][round % 2]()
            var place = Int.random(in: 0..<2200, using: &dice)
            var isDone = false
            while true {
                var up = pair.client.take()
                var down = pair.server.take()
                if up.isEmpty, down.isEmpty { break }
                isDone = Self.change(&up, &place, &dice) || isDone
                isDone = Self.change(&down, &place, &dice) || isDone
                if !up.isEmpty { pair.server.give(up) }
                if !down.isEmpty { pair.client.give(down) }
            }
            guard isDone else {
                #expect(pair.client.failure == nil && pair.server.failure == nil)
                continue
            }
            // The byte had no meaning, or was part of a ticket that came afterwards.
            guard let client = pair.client.parameters, let server = pair.server.parameters else {
                continue
            }
            #expect(client.version == server.version && client.group == server.group)
            #expect(client.cipherSuite == server.cipherSuite)
            #expect(client.applicationProtocol == server.applicationProtocol)
            #expect(client.isResumed == server.isResumed)
        }
    }

    /// Changes the byte at `place` if it is in `bytes`; otherwise counts down to it.
    private static func change(
        _ bytes: inout [UInt8], _ place: inout Int, _ dice: inout SplitMix64
    ) -> Bool {
        defer { place -= bytes.count }
        guard bytes.indices.contains(place) else { return false }
        bytes[place] ^= UInt8.random(in: 1...255, using: &dice)
        return true
    }

    @Test("Random bytes do no harm")
    func noise() throws {
        var dice = SplitMix64(seed: 11)
        let server = try TLSServerContext(TLSServerSettings(.exampleLeaf))
        let client = try TLSClientContext(TLSClientSettings(trusting: .authority))
        let peer = try TLSPeerContext(secrets: [[UInt8](repeating: 7, count: 32)])
        for round in 0..<Trials.count(2000) {
            let session =
                switch round % 4 {
                case 0: TLSSession(server)
                case 1: TLSSession(client, to: .name("a.example"))
                case 2: TLSSession(peer: peer, dials: true)
                default: TLSSession(peer: peer, dials: false)
                }
            let end = PairEnd(session)
            session.start()
            var bytes = (0..<Int.random(in: 1...300, using: &dice)).map { _ in
                UInt8.random(in: 0...255, using: &dice)
            }
            if round % 8 > 3 {
                // Records of random bytes.
                bytes = [22, 3, 3, 0, UInt8(bytes.count & 0x7F)] + bytes
            }
            end.give(bytes)
            #expect(end.parameters == nil)
            _ = end.take()
            if end.failure == nil {
                guard case .failed? = session.inputClosed() else {
                    Issue.record("still open")
                    return
                }
            }
        }
    }

    @Test("Messages without data are limited")
    func quiet() throws {
        let raw = unsafe RawEnd.client { unsafe RawEnd.only(TLS1_3_VERSION, in: $0) }
        let end = run(raw, TLSSession(try TLSServerContext(TLSServerSettings(.exampleLeaf))))
        #expect(end.parameters != nil)
        var count = 0
        while end.failure == nil, count < 5000 {
            unsafe SSL_key_update(raw.ssl, SSL_KEY_UPDATE_NOT_REQUESTED)
            unsafe SSL_do_handshake(raw.ssl)
            end.give(raw.take())
            count += 1
        }
        #expect(end.failure?.cause == .inputLimitExceeded(max: CiphertextInput.bytesWithoutDataMax))
        #expect(count > 1000)
    }
}
