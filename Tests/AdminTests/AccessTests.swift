import Admin
import Ground
import HTTPRules
import Testing

@Suite("Authorization on the admin port")
struct AccessTests {
    private static func digest(_ byte: UInt8) -> TokenDigest {
        TokenDigest([UInt8](repeating: byte, count: 32).span)
    }

    private static let guarded = AdminAccessPolicy(grants: [
        .init(.read, digest(1)), .init(.purge, digest(2)), .init(.admin, digest(3)),
    ])

    private func caller(
        _ proof: AdminCaller.Credential = .none, host: String = "127.0.0.1:8081",
        origin: String? = nil, site: String? = nil
    ) -> AdminCaller {
        AdminCaller(
            address: .v4(0x7F00_0001), proof: proof, authority: Array(host.utf8),
            origin: origin.map { Array($0.utf8) }, fetchSite: site.map { Array($0.utf8) })
    }

    @Test("Each role has the permissions of the lower ones, and no more")
    func roles() {
        for (byte, has) in zip([1, 2, 3] as [UInt8], AdminRole.allCases) {
            for wanted in AdminRole.allCases {
                let outcome = Self.guarded.authorize(
                    caller(.token(Self.digest(byte))), for: wanted)
                #expect(
                    outcome
                        == (has >= wanted ? .allowed(has) : .denied(.insufficientRole(has, wanted)))
                )
            }
        }
    }

    @Test("With tokens configured every caller needs one, on loopback too")
    func tokens() {
        let access = Self.guarded
        #expect(access.authorize(caller(), for: .read) == .denied(.tokenMissing))
        #expect(
            access.authorize(caller(.token(Self.digest(9))), for: .read)
                == .denied(.tokenUnknown))
        #expect(access.authorize(caller(.malformed), for: .read) == .denied(.tokenMalformed))
        #expect(access.authorize(caller(.certificate), for: .admin) == .allowed(.admin))
        #expect(access.authorize(caller(), for: nil) == .allowed(.read))
    }

    @Test("Without tokens callers must address the node by IP address or localhost")
    func names() {
        let access = AdminAccessPolicy()
        for host in ["127.0.0.1:8081", "[::1]:8081", "localhost", "LOCALHOST:1", "a.localhost:2"] {
            #expect(access.authorize(caller(host: host), for: .admin) == .allowed(.admin))
        }
        for host in ["evil.example:8081", "", "127.0.0.1.evil.example", "[::1", "localhost.a"] {
            #expect(
                access.authorize(caller(host: host), for: .read)
                    == .denied(.hostNotAllowed(Array(host.utf8))))
        }
        #expect(
            access.authorize(caller(.token(Self.digest(1))), for: .read)
                == .denied(.tokensNotConfigured))
    }

    @Test("Cross-site requests are denied, whatever their credential")
    func crossSite() {
        let mine = "127.0.0.1:8081"
        for proof in [.none, .certificate, .token(Self.digest(3))] as [AdminCaller.Credential] {
            for site in ["cross-site", "same-site", "nonsense"] {
                #expect(
                    Self.guarded.authorize(caller(proof, site: site), for: .read)
                        == .denied(.crossSite))
            }
            for origin in ["https://evil.example", "null", "http://127.0.0.1:80", mine] {
                #expect(
                    Self.guarded.authorize(caller(proof, origin: origin), for: .read)
                        == .denied(.crossSite))
            }
        }
        let access = AdminAccessPolicy()
        for site in ["same-origin", "none"] {
            #expect(access.authorize(caller(site: site), for: .admin) == .allowed(.admin))
        }
        #expect(
            access.authorize(caller(origin: "http://\(mine)"), for: .admin) == .allowed(.admin))
    }

    @Test("A token file assigns roles; a token alone has the admin role")
    func file() throws {
        let long = String(repeating: "a", count: 16)
        let text = "# people\nread \(long)1\npurge   \(long)2\r\n\n\(long)3\nadmin \(long)4\n"
        let entries = try AdminTokenFile.entries(of: Array(text.utf8))
        #expect(entries.map(\.role) == [.read, .purge, .admin, .admin])
        #expect(
            entries.map { String(decoding: $0.token, as: UTF8.self) }
                == [1, 2, 3, 4].map { "\(long)\($0)" })
        let faults: [(String, AdminTokenFile.ParseError)] = [
            ("\nroot \(long)", .role(line: 2)), ("", .tokens(.noTokens)),
            ("read short", .tokens(.length(line: 1, count: 5))),
            ("\(long)\nread \(long)", .tokens(.repeated(line: 2))),
            ("read \(long) more", .tokens(.byte(line: 1))),
        ]
        for (text, fault) in faults {
            #expect(throws: fault, "\(text)") { try AdminTokenFile.entries(of: Array(text.utf8)) }
        }
    }
}
