import Ground
import Origin
import Testing

@Suite("The address guard")
struct AddressGuardTests {
    /// A refused range by its edges, and its neighbours that are ordinary addresses (nil where
    /// there is none).
    struct Row: Sendable, CustomTestStringConvertible {
        let range: SpecialRange
        let first: String
        let last: String
        let before: String?
        let after: String?

        init(
            _ range: SpecialRange, _ first: String, _ last: String, before: String?,
            after: String?
        ) {
            self.range = range
            self.first = first
            self.last = last
            self.before = before
            self.after = after
        }

        var testDescription: String { "\(range) \(first)–\(last)" }
    }

    static let v4: [Row] = [
        Row(.unspecified, "0.0.0.0", "0.255.255.255", before: nil, after: "1.0.0.0"),
        Row(
            .privateUse, "10.0.0.0", "10.255.255.255", before: "9.255.255.255", after: "11.0.0.0"),
        Row(
            .carrierGrade, "100.64.0.0", "100.127.255.255", before: "100.63.255.255",
            after: "100.128.0.0"),
        Row(
            .loopback, "127.0.0.0", "127.255.255.255", before: "126.255.255.255",
            after: "128.0.0.0"),
        Row(
            .linkLocal, "169.254.0.0", "169.254.255.255", before: "169.253.255.255",
            after: "169.255.0.0"),
        Row(
            .privateUse, "172.16.0.0", "172.31.255.255", before: "172.15.255.255",
            after: "172.32.0.0"),
        Row(
            .protocolAssignments, "192.0.0.0", "192.0.0.255", before: "191.255.255.255",
            after: "192.0.1.0"),
        Row(
            .documentation, "192.0.2.0", "192.0.2.255", before: "192.0.1.255", after: "192.0.3.0"),
        Row(
            .sixToFourRelay, "192.88.99.0", "192.88.99.255", before: "192.88.98.255",
            after: "192.88.100.0"),
        Row(
            .privateUse, "192.168.0.0", "192.168.255.255", before: "192.167.255.255",
            after: "192.169.0.0"),
        Row(
            .benchmarking, "198.18.0.0", "198.19.255.255", before: "198.17.255.255",
            after: "198.20.0.0"),
        Row(
            .documentation, "198.51.100.0", "198.51.100.255", before: "198.51.99.255",
            after: "198.51.101.0"),
        Row(
            .documentation, "203.0.113.0", "203.0.113.255", before: "203.0.112.255",
            after: "203.0.114.0"),
        Row(.multicast, "224.0.0.0", "239.255.255.255", before: "223.255.255.255", after: nil),
        Row(.reserved, "240.0.0.0", "255.255.255.254", before: nil, after: nil),
        Row(.broadcast, "255.255.255.255", "255.255.255.255", before: nil, after: nil),
    ]

    static let v6: [Row] = [
        Row(.unspecified, "::", "::", before: nil, after: nil),
        Row(.loopback, "::1", "::1", before: nil, after: nil),
        Row(
            .localTranslation, "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", before: nil,
            after: nil),
        Row(.discardOnly, "100::", "100:0:0:1:ffff:ffff:ffff:ffff", before: nil, after: nil),
        Row(.reserved, "100:0:0:2::", "1fff:ffff::", before: nil, after: "2000::"),
        Row(
            .protocolAssignments, "2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
            before: nil, after: "2001:200::"),
        Row(
            .benchmarking, "2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", before: nil,
            after: nil),
        Row(
            .documentation, "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
            before: "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", after: "2001:db9::"),
        Row(
            .documentation, "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
            before: "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", after: "3fff:1000::"),
        Row(.reserved, "4000::", "5eff:ffff::", before: "3fff:ffff::", after: nil),
        Row(
            .segmentRouting, "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", before: nil,
            after: nil),
        Row(
            .privateUse, "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", before: nil,
            after: nil),
        Row(.reserved, "fe00::", "fe7f:ffff:ffff:ffff::1", before: nil, after: nil),
        Row(
            .linkLocal, "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", before: nil,
            after: nil),
        Row(
            .privateUse, "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", before: nil,
            after: nil),
        Row(
            .multicast, "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", before: nil,
            after: nil),
    ]

    @Test("The guard of what the operator names refuses nothing")
    func open() throws {
        for text in ["127.0.0.1", "10.0.0.7", "::1", "fd00::1", "::ffff:192.168.0.1", "8.8.8.8"] {
            #expect(AddressGuard.open.judge(try #require(IPAddress(text))) == .allowed)
        }
    }

    @Test(
        "A special range is refused up to its edges, and nothing beside it", arguments: v4 + v6
    )
    func edges(row: Row) throws {
        let addressGuard = AddressGuard()
        let refused = AddressVerdict.refused(AddressRefusal(range: row.range, embedding: nil))
        #expect(addressGuard.judge(try address(row.first)) == refused)
        #expect(addressGuard.judge(try address(row.last)) == refused)
        for neighbour in [row.before, row.after] {
            guard let neighbour else { continue }
            #expect(addressGuard.judge(try address(neighbour)) == .allowed)
        }
    }

    /// How an IPv4 address is written in a form of IPv6; `public` ones of that form may still be
    /// refused as a whole.
    static let forms: [(Embedding, isRefusedWhole: Bool, @Sendable (UInt32) -> IPAddress)] = [
        (.mapped, false, { .v6(0xFFFF << 32 | UInt128($0)) }),
        (.compatible, true, { .v6(UInt128($0)) }),
        (.translated, true, { .v6(0xFFFF << 48 | UInt128($0)) }),
        (.nat64, false, { .v6(0x0064_FF9B << 96 | UInt128($0)) }),
        (.sixToFour, false, { .v6(0x2002 << 112 | UInt128($0) << 80 | 7 << 64 | 1) }),
        (
            .teredoServer, false,
            { .v6(0x2001_0000 << 96 | UInt128($0) << 64 | UInt128(~UInt32(0x0808_0808))) }
        ),
        (.teredoClient, false, { .v6(0x2001_0000_0808_0808 << 64 | UInt128(~$0)) }),
        (.isatap, false, { .v6(0x2A00_1450 << 96 | 0x5EFE << 32 | UInt128($0)) }),
        (.isatap, false, { .v6(0x2A00_1450 << 96 | 0x0200_5EFE << 32 | UInt128($0)) }),
    ]

    @Test("A refused IPv4 address is refused in every form of IPv6 that embeds it", arguments: v4)
    func embedded(row: Row) throws {
        for (embedding, _, form) in Self.forms {
            for text in [row.first, row.last] {
                guard case .v4(let number) = try address(text) else { continue }
                // :: and ::1 are refused under their own names.
                if embedding == .compatible, number <= 1 { continue }
                let verdict = AddressGuard().judge(form(number))
                let refusal = AddressRefusal(range: row.range, embedding: embedding)
                #expect(verdict == .refused(refusal), "\(form(number))")
            }
        }
    }

    @Test("An ordinary IPv4 address is allowed in those forms of IPv6 that are still routed")
    func embeddedOrdinary() {
        for (embedding, isRefusedWhole, form) in Self.forms {
            let isAllowed = AddressGuard().judge(form(0x0808_0808)) == .allowed
            #expect(isAllowed == !isRefusedWhole, "\(embedding)")
        }
    }

    @Test("An opened IPv4 range opens its mapped form and no other embedding")
    func openedV4() throws {
        let addressGuard = AddressGuard(opening: [try Network(parsing: "10.1.0.0/16")])
        for (text, isAllowed) in [
            ("10.1.0.0", true), ("10.1.255.255", true), ("10.0.255.255", false),
            ("10.2.0.0", false), ("::ffff:10.1.2.3", true), ("::ffff:10.2.2.3", false),
            ("64:ff9b::10.1.2.3", false), ("2002:a01:203::1", false), ("::10.1.2.3", false),
        ] {
            #expect((addressGuard.judge(try address(text)) == .allowed) == isAllowed, "\(text)")
        }
    }

    @Test("An opened IPv6 range opens what lies in it, whatever that embeds")
    func openedV6() throws {
        let addressGuard = AddressGuard(
            opening: [try Network(parsing: "fd12::/16"), try Network(parsing: "64:ff9b::/96")])
        for (text, isAllowed) in [
            ("fd12::1", true), ("fd13::1", false), ("fd12::5efe:127.0.0.1", true),
            ("64:ff9b::10.0.0.1", true), ("10.0.0.1", false), ("::ffff:10.0.0.1", false),
        ] {
            #expect((addressGuard.judge(try address(text)) == .allowed) == isAllowed, "\(text)")
        }
    }

    @Test("Only the allowed addresses are left, in their order")
    func filter() throws {
        let texts = ["10.0.0.1", "8.8.8.8", "::1", "2a00:1450::1", "127.0.0.1", "1.1.1.1"]
        let left = AddressGuard().allowed(of: try texts.map(address))
        #expect(left.map(\.description) == ["8.8.8.8", "2a00:1450::1", "1.1.1.1"])
    }

    @Test("A refusal says which range and which embedding")
    func sentence() throws {
        guard case .refused(let refusal) = AddressGuard().judge(try address("2002:7f00:1::")) else {
            Issue.record("6to4 of 127.0.0.1 is allowed")
            return
        }
        #expect(refusal.description == "loopback, embedded in IPv6 as 6to4")
    }
}

func address(_ text: String) throws -> IPAddress {
    try #require(IPAddress(text), "\(text)")
}
