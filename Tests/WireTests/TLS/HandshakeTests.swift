import COpenSSL
import Certificates
import Ground
import NIOCore
import Testing
import Wire

@Suite struct HandshakeTests {
    @Test("Client and server agree on TLS 1.3 with a 128-bit suite")
    func newestVersion() throws {
        let pair = try pair().run()
        let parameters = try #require(pair.client.parameters)
        #expect(parameters.version == .tls13)
        #expect(parameters.cipherSuite == "TLS_AES_128_GCM_SHA256")
        #expect(parameters.group == "x25519")
        #expect(!parameters.isResumed)
        #expect(parameters.certificate?.subject == "CN=a")
        #expect(parameters.certificate?.fingerprint.count == 64)
        #expect(parameters.serverName == nil)
        #expect(pair.server.parameters?.version == .tls13)
        #expect(pair.server.parameters?.serverName == "a.example")
        #expect(pair.server.parameters?.certificate == nil)
    }

    @Test("With TLS 1.2 a client gets an ephemeral key exchange and authenticated encryption")
    func version12() throws {
        let raw = unsafe RawEnd.client { unsafe RawEnd.only(TLS1_2_VERSION, in: $0) }
        let server = run(raw, TLSSession(try TLSServerContext(TLSServerSettings(.exampleLeaf))))
        #expect(server.parameters?.version == .tls12)
        #expect(server.parameters?.cipherSuite.hasPrefix("TLS_ECDHE_ECDSA_WITH_") == true)
        #expect(server.parameters?.group != nil)
        raw.write(Array("GET".utf8))
        run(raw, server)
        #expect(server.data == Array("GET".utf8))
    }

    @Test("An origin with TLS 1.2 is accepted, unless 1.3 is required")
    func origin12() throws {
        for minimum in [TLSVersion.tls12, .tls13] {
            let raw = unsafe RawEnd.server(.exampleLeaf) {
                unsafe RawEnd.only(TLS1_2_VERSION, in: $0)
            }
            var settings = TLSClientSettings(trusting: .authority)
            settings.minimumVersion = minimum
            let context = try TLSClientContext(settings)
            let client = run(raw, TLSSession(context, to: .name("a.example")))
            #expect(client.parameters?.version == (minimum == .tls12 ? .tls12 : nil))
            #expect(client.failure?.cause == (minimum == .tls12 ? nil : .versionTooOld))
        }
    }

    @Test(
        "Old and weak suites are refused",
        arguments: [
            "AES128-SHA", "AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA",
            "ECDHE-ECDSA-AES128-SHA256", "DHE-RSA-AES128-GCM-SHA256",
        ])
    func weakSuites(suite: String) throws {
        let raw = unsafe RawEnd.client { context in
            unsafe RawEnd.only(TLS1_2_VERSION, in: context)
            unsafe SSL_CTX_set_cipher_list(context, suite)
        }
        let server = run(raw, TLSSession(try TLSServerContext(TLSServerSettings(.exampleLeaf))))
        #expect(server.failure?.cause == .noSharedParameters)
        #expect(raw.alert == 40)
    }

    @Test("Versions before 1.2 are refused by both ends", arguments: [0x0301, 0x0302] as [CInt])
    func oldVersions(version: CInt) throws {
        let rawClient = unsafe RawEnd.client { unsafe RawEnd.only(version, in: $0) }
        let server = run(
            rawClient, TLSSession(try TLSServerContext(TLSServerSettings(.exampleLeaf))))
        #expect(server.failure?.cause == .versionTooOld)
        #expect(server.failure?.side == .client)
        #expect(rawClient.alert == 70)
        let rawServer = unsafe RawEnd.server(.exampleLeaf) { unsafe RawEnd.only(version, in: $0) }
        let context = try TLSClientContext(TLSClientSettings(trusting: .authority))
        let client = run(rawServer, TLSSession(context, to: .name("a.example")))
        #expect(client.failure?.cause == .versionTooOld)
        #expect(client.failure?.side == .origin)
    }

    @Test(
        "The server's first protocol that the client offers is chosen",
        arguments: [
            ([.http2, .http11], [.http2, .http11], .http2),
            ([.http2, .http11], [.http11, .http2], .http2),
            ([.http11, .http2], [.http2, .http11], .http11),
            ([.http2, .http11], [.http11], .http11),
            ([.http11], [.http2, .http11], .http11),
            ([.http2, .http11, .http10], [.http10], .http10),
            ([.http2, .http11], [], nil),
        ] as [([TLSApplicationProtocol], [TLSApplicationProtocol], TLSApplicationProtocol?)])
    func protocols(
        server: [TLSApplicationProtocol], client: [TLSApplicationProtocol],
        chosen: TLSApplicationProtocol?
    ) throws {
        let pair = try pair {
            $0.protocols = server
        } client: {
            $0.protocols = client
        }
        pair.run()
        #expect(pair.client.parameters != nil && pair.server.parameters != nil)
        #expect(pair.client.parameters?.applicationProtocol == chosen)
        #expect(pair.server.parameters?.applicationProtocol == chosen)
    }

    @Test("A client that offers only other protocols is refused with the alert for it")
    func noProtocol() throws {
        let pair = try pair {
            $0.protocols = [.http11]
        } client: {
            $0.protocols = [.http2]
        }
        pair.run()
        #expect(pair.server.failure?.cause == .noApplicationProtocol)
        #expect(pair.client.failure?.cause == .noApplicationProtocol)
        let raw = unsafe RawEnd.client { unsafe SSL_CTX_set_alpn_protos($0, [1, 0x78], 2) }
        run(raw, TLSSession(try TLSServerContext(TLSServerSettings(.exampleLeaf))))
        #expect(raw.alert == 120)
    }

    @Test("An origin that chooses a protocol that was not offered is refused")
    func foreignProtocol() throws {
        let raw = unsafe RawEnd.server(.exampleLeaf) { context in
            unsafe SSL_CTX_set_alpn_select_cb(
                context,
                { _, chosen, count, _, _, _ in
                    unsafe chosen?.pointee = UnsafeRawPointer(StaticString("h3").utf8Start)
                        .assumingMemoryBound(to: UInt8.self)
                    unsafe count?.pointee = 2
                    return SSL_TLSEXT_ERR_OK
                }, nil)
        }
        let context = try TLSClientContext(TLSClientSettings(trusting: .authority))
        let client = run(raw, TLSSession(context, to: .name("a.example")))
        #expect(client.parameters == nil)
        #expect(client.failure?.side == .origin)
    }

    @Test("Data is sent both ways, and close_notify ends it")
    func data() throws {
        let pair = try pair().run()
        pair.client.session.write(ByteBuffer(string: "GET"), now: noon)
        pair.run()
        #expect(pair.server.data == Array("GET".utf8))
        pair.server.session.write(ByteBuffer(string: "200"), now: noon)
        pair.server.session.close()
        pair.run()
        #expect(pair.client.data == Array("200".utf8))
        #expect(pair.client.isClosed)
        #expect(pair.client.session.inputClosed() == nil)
    }

    @Test("After the other side's end data can still be written")
    func halfClosed() throws {
        let pair = try pair().run()
        pair.client.session.write(ByteBuffer(string: "GET"), now: noon)
        pair.client.session.close()
        pair.client.session.write(ByteBuffer(string: "more"), now: noon)
        pair.run()
        #expect(pair.server.data == Array("GET".utf8))
        #expect(pair.server.isClosed)
        pair.server.session.write(ByteBuffer(string: "200"), now: noon)
        pair.server.session.close()
        pair.run()
        #expect(pair.client.data == Array("200".utf8))
        #expect(pair.client.isClosed)
    }

    @Test("An end without close_notify is a truncation, at any point")
    func cut() throws {
        let early = try pair()
        guard case .failed(let failure)? = early.server.session.inputClosed() else {
            Issue.record("no failure")
            return
        }
        #expect(failure.cause == .truncated && failure.side == .client && failure.mayRetry)
        let late = try pair().run()
        late.server.session.write(ByteBuffer(string: "200"), now: noon)
        late.run()
        guard case .failed(let failure)? = late.client.session.inputClosed() else {
            Issue.record("no failure")
            return
        }
        #expect(failure.cause == .truncated && failure.side == .origin)
        #expect(failure.message == "The origin closed the TLS connection without close_notify.")
        #expect(late.client.data == Array("200".utf8))
        #expect(late.client.session.inputClosed() == nil)
    }

    @Test(
        "Plain text is refused by either end",
        arguments: ["GET / HTTP/1.1\r\n", "HTTP/1.1 400 Bad\r\n", "\u{16}GET", "\u{80}\u{2E}"])
    func clearText(text: String) throws {
        let bytes = latin1(text)
        let pair = try pair()
        pair.server.give(bytes)
        pair.client.give(bytes)
        for end in [pair.server, pair.client] {
            guard case .notTLS(let first)? = end.failure?.cause else {
                Issue.record("\(String(describing: end.failure))")
                return
            }
            #expect(bytes.prefix(2).contains(first))
            #expect(end.failure?.message.contains("does not use TLS") == true)
        }
        #expect(pair.server.take().isEmpty)
    }

    @Test("An endless handshake is ended")
    func endlessHandshake() throws {
        let pair = try pair()
        // A message that claims 15 MiB, which OpenSSL refuses at once by its kind or size.
        pair.server.give([22, 3, 1, 0, 4, 1, 0xF0, 0, 0])
        #expect(pair.server.failure != nil)
        // Empty handshake messages of a client after its hello.
        let other = try self.pair13()
        let junk: [UInt8] = [20, 3, 3, 0, 1, 1]
        for _ in 0..<20_000 where other.failure == nil { other.give(junk) }
        #expect(other.failure != nil)
    }

    /// A server that has read a client's hello.
    private func pair13() throws -> PairEnd {
        let pair = try pair()
        pair.server.give(pair.client.take())
        _ = pair.server.take()
        return pair.server
    }
}
