import Admin
import FoundationEssentials
import Ground
import HTTPRules
import Testing

@Suite("The body of a purge request")
struct PurgeRequestTests {
    /// Decodes a request as a node does.
    private func read(_ json: String) -> Result<PurgeRequest, PurgeError> {
        do {
            return .success(try JSONDecoder().decode(PurgeRequest.self, from: Data(json.utf8)))
        } catch {
            return .failure(PurgeError(decodingError: error))
        }
    }

    private func refusal(_ json: String) -> PurgeError? {
        guard case .failure(let fault) = read(json) else { return nil }
        return fault
    }

    private static func key(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test("A request with all members is decoded")
    func whole() throws {
        let request = try read(
            """
            {"id": "deploy-7-1", "mode": "soft", "wait": "all", "timeout_ms": 250, "targets": [
              {"url": "https://A.test/x.jpg"}, {"prefix": "b.test/img/"}, {"tag": "news"},
              {"everything": true}]}
            """
        ).get()
        #expect(request.id == Self.key("deploy-7-1") && request.isSoft)
        #expect(request.wait == .all && request.timeout == .milliseconds(250))
        #expect(
            request.targets == [
                .url(Self.key("a.test/x.jpg")),
                .prefix(host: Self.key("b.test"), path: Self.key("/img/")),
                .tag(Self.key("news")), .everything,
            ])
    }

    @Test("Only targets are required; a purge is hard by default")
    func least() throws {
        let request = try read("{\"targets\":[{\"tag\":\"a\"}]}").get()
        #expect(request == PurgeRequest(targets: [.tag(Self.key("a"))]))
        #expect(!request.isSoft && request.id == nil && request.wait == nil)
        #expect(try read("{\"mode\":\"hard\",\"targets\":[{\"tag\":\"a\"}]}").get() == request)
    }

    @Test(
        "Invalid JSON is reported as such",
        arguments: [
            "", " ", "{", "{\"targets\":[}", "{\"targets\":[{\"tag\":\"a\"}]} x", "targets=a",
            "{\"targets\":[{\"tag\":\"\\ud800\"}]}", "{\"targets\":[{'tag':\"a\"}]}",
        ])
    func syntax(json: String) throws {
        let fault = try #require(refusal(json))
        #expect(fault.problem.status == 400 && fault.problem.name == "purge-malformed", "\(fault)")
    }

    @Test("Deep nesting is refused and costs no stack")
    func depth() throws {
        for (open, close) in [("[", "]"), ("{\"targets\":", "}")] {
            for count in [600, 5_000] {
                let json =
                    String(repeating: open, count: count) + "1"
                    + String(repeating: close, count: count)
                #expect(try #require(refusal(json)).status == 400)
            }
        }
    }

    @Test("Invalid UTF-8 is invalid JSON")
    func encoding() {
        var data = Data("{\"targets\":[{\"tag\":\"".utf8)
        data.append(contentsOf: [0xC3, 0x28])
        data.append(contentsOf: Data("\"}]}".utf8))
        #expect {
            try JSONDecoder().decode(PurgeRequest.self, from: data)
        } throws: {
            PurgeError(decodingError: $0).status == 400
        }
    }

    private static let types: [(String, PurgeError)] = [
        ("[]", .type("", wanted: "an object")), ("null", .type("", wanted: "an object")),
        ("7", .type("", wanted: "an object")),
        ("{\"targets\":{}}", .type("targets", wanted: "an array")),
        ("{\"targets\":\"x\"}", .type("targets", wanted: "an array")),
        ("{\"targets\":null}", .type("targets", wanted: "an array")),
        ("{\"targets\":[7]}", .type("targets[0]", wanted: "an object")),
        ("{\"targets\":[{\"tag\":\"a\"},null]}", .type("targets[1]", wanted: "an object")),
        (
            "{\"targets\":[{\"tag\":\"a\"},{\"url\":7}]}",
            .type("targets[1].url", wanted: "a string")
        ),
        ("{\"targets\":[{\"prefix\":null}]}", .type("targets[0].prefix", wanted: "a string")),
        ("{\"targets\":[{\"tag\":[\"a\"]}]}", .type("targets[0].tag", wanted: "a string")),
        ("{\"targets\":[{\"everything\":1}]}", .type("targets[0].everything", wanted: "true")),
        ("{\"id\":7,\"targets\":[]}", .type("id", wanted: "a string")),
        ("{\"mode\":true,\"targets\":[]}", .type("mode", wanted: "a string")),
        ("{\"timeout_ms\":\"5s\",\"targets\":[]}", .type("timeout_ms", wanted: "a whole number")),
        ("{\"timeout_ms\":1.5,\"targets\":[]}", .type("timeout_ms", wanted: "a whole number")),
        ("{\"timeout_ms\":1e99,\"targets\":[]}", .type("timeout_ms", wanted: "a whole number")),
    ]

    @Test(
        "A value of the wrong type is reported with its path and the expected type",
        arguments: types)
    func ofType(json: String, expected: PurgeError) {
        #expect(refusal(json) == expected)
        #expect(expected.status == 422)
    }

    private static let values: [(String, PurgeError)] = [
        ("{}", .noTargets), ("{\"targets\":[]}", .noTargets),
        ("{\"mode\":\"HARD\"}", .value("mode", allowed: "hard or soft")),
        ("{\"wait\":\"some\"}", .value("wait", allowed: "none, issued, all")),
        ("{\"timeout_ms\":-1}", .value("timeout_ms", allowed: "0 to 60000")),
        ("{\"timeout_ms\":60001}", .value("timeout_ms", allowed: "0 to 60000")),
        ("{\"id\":\"\"}", .invalidID("id")), ("{\"id\":\"a\\u0000\"}", .invalidID("id")),
        ("{\"id\":\"\(String(repeating: "é", count: 65))\"}", .invalidID("id")),
        (
            "{\"targets\":[{}]}",
            .value("targets[0]", allowed: "exactly one of url, prefix, tag, everything")
        ),
        (
            "{\"targets\":[{\"tag\":\"a\",\"url\":\"http://a/\"}]}",
            .value("targets[0]", allowed: "exactly one of url, prefix, tag, everything")
        ),
        (
            "{\"targets\":[{\"everything\":false}]}",
            .value("targets[0].everything", allowed: "true")
        ),
        ("{\"targets\":[{\"url\":\"/a\"}]}", .invalidTarget("targets[0].url", .url(.scheme))),
        (
            "{\"targets\":[{\"prefix\":\"a/?b\"}]}",
            .invalidTarget("targets[0].prefix", .prefixQuery)
        ),
        ("{\"targets\":[{\"tag\":\"\"}]}", .invalidTarget("targets[0].tag", .tagEmpty)),
        (
            "{\"targets\":[{\"tag\":\"\\u0000a.test/x\"}]}",
            .invalidTarget("targets[0].tag", .tagControl)
        ),
        (
            "{\"targte\":[]}",
            .unknown("", key: "targte", allowed: ["id", "mode", "wait", "timeout_ms", "targets"])
        ),
        (
            "{\"targets\":[{\"tag\":\"a\",\"soft\":true}]}",
            .unknown("targets[0]", key: "soft", allowed: ["url", "prefix", "tag", "everything"])
        ),
    ]

    @Test(
        "A value that is not allowed is reported with its path and the allowed values",
        arguments: values)
    func ofValue(json: String, expected: PurgeError) {
        #expect(refusal(json) == expected)
        #expect(expected.status == 422 && expected.message.hasSuffix("Nothing was purged."))
    }

    @Test("Of several unknown keys the same one is always reported")
    func unknownKeys() {
        for number in 0..<20 {
            let keys = ["z", "y", "x", "w"].map { "\"\($0)\(number)\":1," }.joined()
            let refusal = refusal("{\(keys)\"targets\":[{\"tag\":\"a\"}]}")
            guard case .invalidBody(.unknownKey("", "w\(number)", _))? = refusal else {
                Issue.record("\(String(describing: refusal))")
                return
            }
        }
    }

    @Test("Of a repeated key in one object the first counts")
    func twice() throws {
        let json = "{\"mode\":\"soft\",\"mode\":\"hard\",\"targets\":[{\"tag\":\"a\"}]}"
        #expect(try read(json).get().isSoft)
    }

    @Test("A purge has at most 256 targets and an id of at most 128 bytes")
    func limits() throws {
        func body(_ count: Int) -> String {
            let targets = (0..<count).map { "{\"tag\":\"t\($0)\"}" }.joined(separator: ",")
            return "{\"targets\":[\(targets)]}"
        }
        #expect(try read(body(256)).get().targets.count == 256)
        #expect(refusal(body(257)) == .tooManyTargets)
        #expect(PurgeError.tooManyTargets.status == 422)
        let id = String(repeating: "é", count: 64)
        #expect(
            try read("{\"id\":\"\(id)\",\"targets\":[{\"tag\":\"a\"}]}").get().id == Self.key(id))
    }
}

@Suite("Errors of purge requests")
struct PurgeFaultTests {
    @Test("An error says where, what, and what is allowed")
    func sentences() {
        for (fault, status, name, part) in [
            (
                .invalidTarget("targets[3].url", .url(.scheme)), 422, "purge-invalid",
                "targets[3].url: The URL must begin with http:// or https://."
            ),
            (
                .unknown("targets[0]", key: "urls", allowed: ["url", "tag"]), 422, "purge-invalid",
                "targets[0] has the unknown key \"urls\"; allowed: url, tag."
            ),
            (.type("", wanted: "an object"), 422, "purge-invalid", "The body must be an object."),
            (.bodyTooLarge, 413, "purge-too-large", "65536 bytes"),
            (.recordTooLarge(bytesMax: 49152), 413, "purge-too-large", "49152 bytes"),
            (.tooManyTargets, 422, "purge-too-large", "more than 256 targets"),
            (.tooManyNames(300), 422, "purge-too-large", "300 names"),
            (.notJSON(""), 400, "purge-malformed", "The body cannot be read as JSON"),
            (.idConflict, 409, "purge-id-taken", "other targets or another mode"),
            (.unknownReceipt, 404, "receipt-unknown", "The log does not contain it"),
            (.invalidReceiptID, 400, "receipt-name", "32 hexadecimal digits"),
            (.duplicateParameter("wait"), 400, "admin-query", "wait is given twice"),
        ] as [(PurgeError, UInt16, String, String)] {
            let problem = fault.problem
            #expect(problem.status == status && problem.name == name, "\(fault)")
            #expect(problem.detail.contains(part), "\(problem.detail)")
        }
    }

    private enum Step: CodingKey {
        case name(String)
        case index(Int)

        init?(stringValue: String) { self = .name(stringValue) }
        init?(intValue: Int) { self = .index(intValue) }

        var stringValue: String {
            switch self {
            case .name(let name): name
            case .index(let index): "Index \(index)"
            }
        }
        var intValue: Int? {
            if case .index(let index) = self { index } else { nil }
        }
    }

    @Test("Errors of the decoder are reported with their path, too")
    func decodingErrors() {
        let context = DecodingError.Context(
            codingPath: [Step.name("targets"), .index(3), .name("url")], debugDescription: "")
        for (error, fault) in [
            (.typeMismatch(Int.self, context), .type("targets[3].url", wanted: "another type")),
            (.valueNotFound(Int.self, context), .type("targets[3].url", wanted: "another type")),
            (.dataCorrupted(context), .notJSON("targets[3].url")),
            (.keyNotFound(Step.index(1), context), .notJSON("")),
        ] as [(DecodingError, PurgeError)] {
            #expect(PurgeError(decodingError: error) == fault)
        }
        #expect(PurgeError(decodingError: PurgeError.idConflict) == .idConflict)
        #expect(PurgeError(decodingError: CancellationError()) == .notJSON(""))
    }

    @Test("A long unknown key is abbreviated")
    func longKey() {
        let key = String(repeating: "k", count: 10_000)
        let fault = PurgeError.unknown("", key: key, allowed: ["id"])
        #expect(fault.message.contains("\"\(key.prefix(40))…\"") && fault.message.count < 200)
    }
}

/// Short forms of errors for tables.
extension PurgeError {
    fileprivate static func notJSON(_ place: String) -> PurgeError {
        .invalidBody(.invalidJSON(place))
    }

    fileprivate static func type(_ place: String, wanted: String) -> PurgeError {
        .invalidBody(.typeMismatch(place, expected: wanted))
    }

    fileprivate static func unknown(_ place: String, key: String, allowed: [String]) -> PurgeError {
        .invalidBody(.unknownKey(place, key: key, allowed: allowed))
    }

    fileprivate static func value(_ place: String, allowed: String) -> PurgeError {
        .invalidBody(.invalidValue(place, allowed: allowed))
    }
}
