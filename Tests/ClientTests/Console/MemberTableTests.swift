import Admin
import Client
import Foundation
import Testing

@Suite("The table of members")
struct MemberTableTests {
    private func row(_ node: String, _ change: (inout MemberRow) -> Void = { _ in }) -> MemberRow {
        var row = MemberRow(
            node: node, process: "0b", address: "10.0.0.1:8082", state: "alive", isCounted: true,
            contactMilliseconds: 999, weight: 100, isCaughtUp: true, isDraining: false,
            isSelf: false, isConnected: true, ringShare: 0.3333)
        change(&row)
        return row
    }

    private func page(_ rows: [MemberRow]) throws -> MemberRow.Page {
        try JSONDecoder().decode(MemberRow.Page.self, from: Data(MemberRow.json(rows).page))
    }

    @Test("what the admin port says of members is read as it was meant")
    func reading() throws {
        let rows = [
            row("01") { $0.isSelf = true }, row("02") { $0.contactMilliseconds = nil },
            row("03") { ($0.isCounted, $0.isConnected, $0.isDraining) = (false, false, true) },
        ]
        let read = try page(rows).members
        #expect(read.map(\.node) == rows.map(\.node) && read == rows)
    }

    @Test("one line a member, under heads, without blanks at the ends")
    func lines() throws {
        let rows = [
            row("01") { ($0.isSelf, $0.contactMilliseconds) = (true, 0) },
            row("02") {
                ($0.state, $0.isConnected, $0.contactMilliseconds) = ("dead", false, 65_400)
                $0.ringShare = 0
            },
            row("03") { ($0.isCounted, $0.isCaughtUp) = (false, false) },
            row("04") { ($0.isDraining, $0.ringShare) = (true, 1) },
            row("05") {
                ($0.state, $0.address, $0.isConnected) = ("unknown", "", false)
                ($0.contactMilliseconds, $0.ringShare) = (nil, 0)
            },
        ]
        #expect(
            try page(rows).table == """
                   NODE  STATE           COUNTED  CONNECTED  CONTACT    SHARE   ADDRESS
                *  01    alive           yes      yes        -          33.3%   10.0.0.1:8082
                   02    dead            yes      no         65s ago    0.0%    10.0.0.1:8082
                   03    alive,joining   no       yes        999ms ago  33.3%   10.0.0.1:8082
                   04    alive,draining  yes      yes        999ms ago  100.0%  10.0.0.1:8082
                   05    unknown         yes      no         never      0.0%
                """)
        #expect(try page([]).table == "this node is in no cluster")
    }
}
