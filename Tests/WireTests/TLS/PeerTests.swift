import COpenSSL
import Certificates
import Ground
import NIOCore
import Testing
import Wire

@Suite("TLS between nodes with one secret") struct PeerTests {
    private static func secret(_ seed: UInt8) -> [UInt8] { Array(repeating: seed, count: 32) }

    private func pair(dials: [[UInt8]], accepts: [[UInt8]]) throws -> Pair {
        Pair(
            client: TLSSession(peer: try TLSPeerContext(secrets: dials), dials: true),
            server: TLSSession(peer: try TLSPeerContext(secrets: accepts), dials: false))
    }

    @Test("Nodes use TLS 1.3 with an ephemeral key exchange and no certificates")
    func agree() throws {
        let pair = try pair(dials: [Self.secret(1)], accepts: [Self.secret(1)]).run()
        for end in [pair.client, pair.server] {
            let parameters = try #require(end.parameters)
            #expect(parameters.version == .tls13)
            #expect(parameters.cipherSuite == "TLS_AES_128_GCM_SHA256")
            #expect(parameters.group == "x25519")
            #expect(parameters.isResumed)
            #expect(parameters.certificate == nil)
        }
        pair.client.session.write(ByteBuffer(string: "hello"), now: noon)
        pair.server.session.write(ByteBuffer(string: "hi"), now: noon)
        pair.run()
        #expect(pair.server.data == Array("hello".utf8))
        #expect(pair.client.data == Array("hi".utf8))
    }

    @Test("Each connection has its own keys")
    func freshKeys() throws {
        let sent = try (0..<2).map { _ in
            let pair = try pair(dials: [Self.secret(1)], accepts: [Self.secret(1)]).run()
            pair.client.sent = []
            pair.client.session.write(ByteBuffer(string: "hello"), now: noon)
            pair.run()
            return pair.client.sent
        }
        #expect(sent[0].count == sent[1].count && sent[0] != sent[1])
    }

    @Test("Nodes connect during a rotation of the secret, in any order of the changes")
    func rotating() throws {
        let (old, new) = (Self.secret(1), Self.secret(2))
        for (dials, accepts) in [
            ([old], [old, new]), ([old, new], [old]), ([old, new], [new, old]),
            ([new, old], [old, new]), ([new, old], [new]), ([new], [new, old]),
        ] {
            let pair = try pair(dials: dials, accepts: accepts).run()
            #expect(pair.client.parameters != nil && pair.server.parameters != nil)
        }
        let pair = try pair(dials: [new, old], accepts: [old]).run()
        #expect(pair.client.failure != nil, "only the first secret is used to dial")
    }

    @Test("Without a common secret nodes do not connect, and both learn why")
    func wrongSecret() throws {
        let pair = try pair(dials: [Self.secret(1)], accepts: [Self.secret(2), Self.secret(3)])
        pair.run()
        for end in [pair.client, pair.server] {
            #expect(end.parameters == nil)
            #expect(end.failure == TLSFailure(.noSharedSecret, as: .peer))
            #expect(end.failure?.message == "The peer does not have the cluster secret.")
            #expect(end.failure?.side == .peer && end.failure?.mayRetry == false)
        }
    }

    @Test("Only a short name derived from the secret is visible")
    func identity() throws {
        let secret = Array("correct horse battery staple, 32 bytes".utf8)
        let pair = try pair(dials: [secret], accepts: [secret])
        let hello = pair.client.take()
        let label = Array("nuthatch-peer-1:".utf8)
        let place = try #require(hello.indices.first { hello[$0...].starts(with: label) })
        let name = hello[(place + label.count)...].prefix(16)
        #expect(name.allSatisfy { Array("0123456789abcdef".utf8).contains($0) })
        #expect(!hello.indices.contains { hello[$0...].starts(with: secret.prefix(8)) })
        // HKDF-SHA256 of the secret, computed independently.
        #expect(String(decoding: name, as: UTF8.self) == "5dc3a93f29a15f42")
    }

    @Test("The secret has a minimum length")
    func length() {
        #expect(throws: TLSSetupError.noSecret) { try TLSPeerContext(secrets: []) }
        #expect(throws: TLSSetupError.secretTooShort(number: 2, bytesMin: 32)) {
            try TLSPeerContext(secrets: [Self.secret(1), Array(repeating: 1, count: 31)])
        }
    }

    @Test("A client that offers the secret without an ephemeral key exchange is refused")
    func pskAlone() throws {
        let pair = try pair(dials: [Self.secret(1)], accepts: [Self.secret(1)])
        var hello = pair.client.take()
        // psk_key_exchange_modes (RFC 8446 §4.2.9): psk_ke instead of psk_dhe_ke.
        let modes: [UInt8] = [0, 45, 0, 2, 1, 1]
        let place = try #require(hello.indices.first { hello[$0...].starts(with: modes) })
        hello[place + 5] = 0
        pair.server.give(hello)
        #expect(pair.server.parameters == nil)
        #expect(pair.server.failure?.cause == .noSharedSecret)
        // handshake_failure: the key was not checked. A wrong key is an illegal_parameter or
        // decrypt_error.
        #expect(pair.server.take().suffix(2) == [2, 40])
    }

    @Test("A client with a modified hello is refused: the binder covers all of it")
    func binder() throws {
        let pair = try pair(dials: [Self.secret(1)], accepts: [Self.secret(1)])
        var hello = pair.client.take()
        hello[20] ^= 1
        pair.server.give(hello)
        #expect(pair.server.parameters == nil)
        #expect(pair.server.failure?.cause == .noSharedSecret)
    }

    @Test("A server with a certificate instead of the secret is refused")
    func impostor() throws {
        let raw = unsafe RawEnd.server(.exampleLeaf)
        let context = try TLSPeerContext(secrets: [Self.secret(1)])
        let end = run(raw, TLSSession(peer: context, dials: true))
        #expect(end.parameters == nil)
        #expect(end.failure?.cause == .noSharedSecret)
    }

    @Test("Clients without a secret are refused, with any version")
    func stranger() throws {
        for version in [TLS1_2_VERSION, TLS1_3_VERSION] {
            let raw = unsafe RawEnd.client { unsafe RawEnd.only(version, in: $0) }
            let context = try TLSPeerContext(secrets: [Self.secret(1)])
            let end = run(raw, TLSSession(peer: context, dials: false))
            #expect(end.parameters == nil)
            #expect(
                end.failure?.cause
                    == (version == TLS1_3_VERSION ? .noSharedSecret : .versionTooOld))
        }
    }

    @Test("No suite is offered whose hash differs from the key's")
    func suites() throws {
        let context = try TLSPeerContext(secrets: [Self.secret(1)])
        let raw = unsafe RawEnd.client {
            unsafe SSL_CTX_set_ciphersuites($0, "TLS_AES_256_GCM_SHA384")
        }
        let end = run(raw, TLSSession(peer: context, dials: false))
        #expect(end.parameters == nil && raw.hasFailed)
        let dialler = TLSSession(peer: context, dials: true)
        dialler.start()
        let hello = try Array(#require(dialler.takeOutput()).readableBytesView)
        // Type, length, version, random; then the session id and the suites.
        let suites = 5 + 4 + 2 + 32 + 1 + Int(hello[43])
        let count = Int(hello[suites]) << 8 + Int(hello[suites + 1])
        let offered = Array(hello[(suites + 2)...].prefix(count))
        #expect(offered == [0x13, 0x01, 0x13, 0x03, 0x00, 0xFF])
    }
}
