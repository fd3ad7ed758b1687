import Admin
import Telemetry
import Testing

@Suite("Pages of the admin port")
struct AdminAnswerTests {
    private func answer(_ page: AdminPage, _ readiness: Readiness) -> AdminAnswer {
        AdminAnswer(
            page, readiness: readiness, snapshot: Snapshot(loops: [], node: NodeCounters()),
            origins: [], members: [])
    }

    @Test("health is ok as long as the process answers", arguments: Readiness.allCases)
    func healthIsAlwaysOK(readiness: Readiness) {
        let answer = answer(.health, readiness)
        #expect(answer.status == 200)
        #expect(answer.contentType == "application/json")
        #expect(answer.body == "{\"status\":\"ok\"}\n")
    }

    @Test(
        "only a ready node asks for requests",
        arguments: zip(Readiness.allCases, [503, 200, 503] as [UInt16]))
    func readinessFollowsTheState(readiness: Readiness, status: UInt16) {
        let answer = answer(.readiness, readiness)
        #expect(answer.status == status)
        #expect(answer.body == "{\"status\":\"\(readiness)\"}\n")
    }

    @Test("counters are read only for the page that shows them")
    func snapshotIsTakenForMetricsOnly() {
        var taken = 0
        func snapshot() -> Snapshot {
            taken += 1
            return Snapshot(loops: [], node: NodeCounters())
        }
        _ = AdminAnswer(
            .health, readiness: .ready, snapshot: snapshot(), origins: [], members: [])
        _ = AdminAnswer(
            .readiness, readiness: .ready, snapshot: snapshot(), origins: [], members: [])
        #expect(taken == 0)
        let answer = AdminAnswer(
            .metrics, readiness: .ready, snapshot: snapshot(), origins: [], members: [])
        #expect(taken == 1)
        #expect(answer.status == 200)
        #expect(answer.contentType == "text/plain; version=0.0.4; charset=utf-8")
    }

    @Test("origins are listed with their circuits")
    func originsAreListed() {
        let row = OriginRow(
            origin: "a.example:80", connections: 3, idle: 1, waiting: 2, circuit: "open",
            failures: 20, retryAfterMilliseconds: 4000)
        let answer = AdminAnswer(
            .origins, readiness: .ready, snapshot: Snapshot(loops: [], node: NodeCounters()),
            origins: [row], members: [])
        #expect(answer.contentType == "application/json")
        #expect(
            answer.body == """
                {"origins":[
                {"origin":"a.example:80","connections":3,"idle":1,"waiting":2,"circuit":"open",\
                "failures":20,"retry_after_ms":4000}
                ]}

                """)
    }

    @Test("members are listed with what they own")
    func membersAreListed() {
        let row = MemberRow(
            node: "0a", process: "0b", address: "10.0.0.1:8082", state: "alive", isCounted: true,
            contactMilliseconds: 0, weight: 100, isCaughtUp: true, isDraining: false, isSelf: true,
            isConnected: true, ringShare: 0.05)
        func body(_ rows: [MemberRow]) -> String {
            AdminAnswer(
                .members, readiness: .ready,
                snapshot: Snapshot(loops: [], node: NodeCounters()), origins: [], members: rows
            ).body
        }
        #expect(
            body([row]) == """
                {"members":[
                {"node":"0a","process":"0b","address":"10.0.0.1:8082","state":"alive",\
                "counted":true,"contact_ms_ago":0,\
                "self":true,"connected":true,"caught_up":true,"draining":false,"weight":100,\
                "ring_share":0.050000}
                ]}

                """)
        #expect(body([]) == "{\"members\":[\n]}\n")
    }
}
