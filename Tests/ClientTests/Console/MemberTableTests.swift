import Admin
import Client
import Testing

@Suite("The table of members")
struct MemberTableTests {
    private func row(_ node: String, _ change: (inout MemberDocument) -> Void = { _ in })
        -> MemberDocument
    {
        var row = MemberDocument()
        (row.node, row.address, row.state) = (node, "10.0.0.1:8082", "alive")
        (row.isVoter, row.isCaughtUp, row.isConnected) = (true, true, true)
        (row.millisecondsSinceContact, row.primaryShare) = (999, 0.3333)
        change(&row)
        return row
    }

    @Test("One line for each member under headers, without trailing blanks")
    func lines() {
        let rows = [
            row("01") { ($0.isSelf, $0.millisecondsSinceContact) = (true, 0) },
            row("02") {
                ($0.state, $0.isConnected, $0.millisecondsSinceContact) = ("dead", false, 65_400)
                $0.primaryShare = 0
            },
            row("03") { ($0.isVoter, $0.isCaughtUp) = (false, false) },
            row("04") { ($0.isDraining, $0.primaryShare) = (true, 1) },
            row("05") {
                ($0.state, $0.address, $0.isConnected) = ("unknown", "", false)
                ($0.millisecondsSinceContact, $0.primaryShare) = (nil, 0)
            },
        ]
        #expect(
            DocumentList(rows).table == """
                   NODE  STATE           VOTER  CONNECTED  CONTACT    SHARE   ADDRESS
                *  01    alive           yes    yes        -          33.3%   10.0.0.1:8082
                   02    dead            yes    no         65s ago    0.0%    10.0.0.1:8082
                   03    alive,joining   no     yes        999ms ago  33.3%   10.0.0.1:8082
                   04    alive,draining  yes    yes        999ms ago  100.0%  10.0.0.1:8082
                   05    unknown         yes    no         never      0.0%
                """)
        #expect(DocumentList<MemberDocument>().table == "this node is not in a cluster")
    }
}
