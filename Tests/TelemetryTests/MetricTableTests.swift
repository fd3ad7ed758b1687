import Telemetry
import Testing

@Suite("The table of metrics")
struct MetricTableTests {
    @Test("every metric is a member of exactly one family")
    func everyMetricHasOneFamily() {
        let members = MetricFamily.table.flatMap(\.members).map(\.metric)
        #expect(members.count == Metric.allCases.count)
        for metric in Metric.allCases {
            #expect(members.count { $0 == metric } == 1, "\(metric)")
        }
    }

    @Test("raw values count up from nought and fit the room that counters have")
    func rawValuesAreIndices() {
        #expect(Metric.allCases.map(\.rawValue) == Array(0..<Metric.allCases.count))
        #expect(Metric.allCases.count <= 128)
    }

    @Test("names are unique and follow Prometheus' rules", arguments: MetricFamily.table)
    func namesFollowTheRules(family: MetricFamily) throws {
        #expect(MetricFamily.table.count { $0.name == family.name } == 1)
        #expect(try /nuthatch(_[a-z]+)+/.wholeMatch(in: family.name) != nil)
        #expect(family.name.hasSuffix("_total") == (family.kind == .counter))
        #expect(family.name.contains("_bytes") == (family.unit == "bytes"))
    }

    @Test(
        "members have different labels if there are several, else none",
        arguments: MetricFamily.table)
    func labelsTellMembersApart(family: MetricFamily) {
        let labels = family.members.map(\.label)
        #expect(Set(labels).count == labels.count)
        #expect(labels.contains("") == family.label.isEmpty)
        #expect(family.label.isEmpty == (labels.count == 1))
    }

    @Test(
        "a meaning is a line without a full stop, advice is sentences",
        arguments: MetricFamily.table)
    func textsAreSentences(family: MetricFamily) {
        #expect(family.meaning.first?.isUppercase == true)
        #expect(!family.meaning.contains("\n") && !family.meaning.hasSuffix("."))
        #expect(!family.advice.contains("\n") && family.advice.hasSuffix("."))
    }
}
