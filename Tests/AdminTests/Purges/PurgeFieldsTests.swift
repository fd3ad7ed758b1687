import Admin
import Ground
import HTTPRules
import Testing

@Suite("The wait field of PURGE requests")
struct PurgeFieldsTests {
    private func settled(_ fields: [String]) throws(PurgeError) -> PurgeRequest {
        var bytes: [UInt8] = []
        var lines: [FieldLine] = []
        for field in fields {
            let parts = field.split(separator: ":", maxSplits: 1)
            let value = parts[1].drop { $0 == " " }
            let name = Extent(start: bytes.count, count: parts[0].utf8.count)
            bytes += Array("\(parts[0]): ".utf8)
            let place = Extent(start: bytes.count, count: value.utf8.count)
            bytes += Array("\(value)\r\n".utf8)
            lines.append(FieldLine(id: .other, name: name, value: place))
        }
        var request = PurgeRequest(targets: [])
        (request.wait, request.timeout) = try PurgeOptions(lines, in: bytes.span).resolved
        return request
    }

    private func request(_ wait: PurgeAcknowledgement, _ timeout: Interval) -> PurgeRequest {
        var request = PurgeRequest(targets: [])
        (request.wait, request.timeout) = (wait, timeout)
        return request
    }

    @Test("The field is optional and its value case-insensitive")
    func values() throws {
        #expect(try settled([]) == request(.issued, .seconds(5)))
        #expect(try settled(["Accept: */*"]) == request(.issued, .seconds(5)))
        #expect(try settled(["Nuthatch-Purge-Wait: all"]) == request(.all, .seconds(5)))
        #expect(
            try settled(["NUTHATCH-PURGE-TIMEOUT: 1500ms", "nuthatch-purge-wait: none"])
                == request(.none, .milliseconds(1500)))
        #expect(try settled(["Nuthatch-Purge-Timeout: 60s"]) == request(.issued, .seconds(60)))
    }

    @Test(
        "An invalid or repeated field is refused",
        arguments: [
            ["Nuthatch-Purge-Wait: ALL"], ["Nuthatch-Purge-Wait: "],
            ["Nuthatch-Purge-Wait: all", "Nuthatch-Purge-Wait: all"],
            ["Nuthatch-Purge-Timeout: 5"], ["Nuthatch-Purge-Timeout: 61s"],
            ["Nuthatch-Purge-Timeout: 1s", "Nuthatch-Purge-Timeout: 1s"],
        ])
    func refused(fields: [String]) {
        let fault = #expect(throws: PurgeError.self) {
            try settled(fields)
        }
        #expect(fault?.problem.status == 400 && fault?.problem.name == "purge-invalid")
        #expect(fault?.message.hasSuffix("Nothing was purged.") == true)
    }
}
