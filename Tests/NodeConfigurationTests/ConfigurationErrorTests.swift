import NodeConfiguration
import Telemetry
import Testing

@Suite("Settings that stop the start")
struct ConfigurationErrorTests {
    @Test("The error for an invalid value names its source")
    func badValuesNameTheirSource() {
        let rest = "\"12x\" is not a size; allowed: 16MiB…1TiB, e.g. 512MiB"
        #expect(
            faults(flags: ["memory-limit": ["12x"]]).first
                == "setting memory-limit (from flag --memory-limit): " + rest)
        #expect(
            faults(environment: ["NUTHATCH_MEMORY_LIMIT": "12x"]).first
                == "setting memory-limit (from environment NUTHATCH_MEMORY_LIMIT): " + rest)
        #expect(
            faults("\n# note\nmemory-limit: 12x\n").first
                == "setting memory-limit (from n.yaml, line 3): " + rest)
    }

    @Test("An invalid value of an overridden source is ignored")
    func beatenValuesAreNotRead() throws {
        _ = try resolve(
            flags: ["memory-limit": ["1GiB"]], environment: ["NUTHATCH_MEMORY_LIMIT": "12x"],
            file: "memory-limit: 13x")
    }

    @Test("An invalid item of a list is reported with its line")
    func badItemsAreNamed() {
        #expect(
            faults("allow-private-origin:\n  - 10.0.0.0/8\n  - 10.0.0.0/99\n").first
                == """
                setting allow-private-origin (from n.yaml, line 3): \
                "10.0.0.0/99" is not a network; \
                allowed: ADDRESS or ADDRESS/BITS, IPv4 or IPv6, e.g. 10.0.0.0/8
                """)
        #expect(
            faults(environment: ["NUTHATCH_ALLOW_ORIGIN": "a.example,b.example"]).first
                == """
                setting allow-origin (from environment NUTHATCH_ALLOW_ORIGIN): \
                "a.example,b.example" is not an origin pattern; \
                allowed: *, HOST or *.SUFFIX, each perhaps with :PORT, e.g. *.example.com
                """)
    }

    @Test(
        "An unknown key is reported with its line and the most similar setting",
        arguments: [
            (
                "loops: 2\nmemory-limt: 1GiB", "\"memory-limt\" (from n.yaml, line 2)",
                "memory-limit"
            ),
            ("memory_limit: 1GiB", "\"memory_limit\" (from n.yaml, line 1)", "memory-limit"),
            ("memoryLimit: 1GiB", "\"memoryLimit\" (from n.yaml, line 1)", "memory-limit"),
            ("lopos: 2", "\"lopos\" (from n.yaml, line 1)", "loops"),
            ("Listen: 2", "\"Listen\" (from n.yaml, line 1)", "listen"),
            ("peers: 2", "\"peers\" (from n.yaml, line 1)", nil),
            ("\"a\\nb\": 2", #""a\nb" (from n.yaml, line 1)"#, nil),
            (
                String(repeating: "x", count: 100) + ": 2",
                "\"" + String(repeating: "x", count: 100) + "\" (from n.yaml, line 1)", nil
            ),
        ] as [(String, String, String?)])
    func unknownKeysAreNamed(file: String, named: String, nearest: String?) {
        let hint = nearest.map { "; perhaps \($0)" } ?? ""
        #expect(faults(file).first == "\(named) is not a setting\(hint)")
    }

    @Test("A file cannot name another file")
    func configIsNotInFile() {
        #expect(
            faults("config: other.yaml").first
                == """
                setting config (from n.yaml, line 1) cannot be given in a file; \
                allowed: flag --config or environment NUTHATCH_CONFIG
                """)
    }

    @Test(
        "A file that is not a mapping is refused, with the line if possible",
        arguments: [
            ("- listen", "n.yaml, line 1: the file is not a mapping of keys to values"),
            ("listen", "n.yaml, line 1: the file is not a mapping of keys to values"),
            ("loops: 1\nallow-origin: *\n", "n.yaml, line 2: did not find expected"),
            ("loops: [1\n", "n.yaml, line 2: did not find expected"),
            ("loops: 1\n---\nloops: 2\n", "n.yaml, line 2: but found another document"),
            (
                "loops: 1\nidle-timeout: 1s\nloops: 2\n",
                "n.yaml, line 1: loops is given more than once"
            ),
            ("[a]: 1\n", "n.yaml, line 1: a key is not plain text"),
            ("loops: 1\n? [a]\n: 1\n", "n.yaml, line 2: keys marked with ? are not supported"),
            ("loops: &a 1\n", "n.yaml, line 1: anchors (&) are not supported"),
            ("loops: *a\n", "n.yaml, line 1: found undefined alias"),
            ("\"a\\nb\": 1\n\"a\\nb\": 2\n", "n.yaml, line 1: a\\nb is given more than once"),
            ("loops: \u{1}", "n.yaml: control characters are not allowed"),
        ])
    func malformedFilesAreRefused(file: String, start: String) {
        let message = faults(file).first ?? ""
        #expect(message.hasPrefix(start), "\(message)")
        #expect(message.hasSuffix("; allowed: one YAML mapping, e.g. memory-limit: 512MiB"))
        #expect(!message.contains("\n"))
    }

    @Test(
        "A value of the wrong shape is refused",
        arguments: [
            ("loops: {a: 1}", "setting loops (from n.yaml, line 1): the value must be plain text"),
            (
                "loops: [1, 2]",
                "setting loops (from n.yaml, line 1): 2 values are given; one is allowed"
            ),
            ("listen: [[a]]", "setting listen (from n.yaml, line 1): the value must be plain text"),
            ("listen: []", "setting listen (from n.yaml, line 1): no value is given"),
            ("loops: []", "setting loops (from n.yaml, line 1): no value is given"),
            ("loops:", "setting loops (from n.yaml, line 1): \"\" is not a number"),
        ])
    func wrongShapesAreRefused(file: String, start: String) {
        let message = faults(file).first ?? ""
        #expect(message.hasPrefix(start + "; allowed: "), "\(message)")
    }

    @Test("A variable of one value is not split at white space")
    func variablesOfOneValueAreWhole() {
        #expect(
            faults(environment: ["NUTHATCH_LOOPS": "1 2"]).first
                == """
                setting loops (from environment NUTHATCH_LOOPS): "1 2" is not a number; \
                allowed: 0…64, e.g. 0
                """)
    }

    @Test("A single-valued flag given twice is refused")
    func repeatedFlagsAreRefused() {
        #expect(
            faults(flags: ["loops": ["1", "2"]]).first
                == """
                setting loops (from flag --loops): 2 values are given; one is allowed; \
                allowed: 0…64, e.g. 0
                """)
    }

    @Test("A size above the one that bounds it is reported with both settings and their sources")
    func conflictsNameBoth() {
        #expect(
            faults("memory-limit: 100MiB", flags: ["object-limit": ["1GiB"]]).first
                == """
                setting object-limit (from flag --object-limit): 1GiB is too large; allowed: \
                at most setting memory-limit, which is 100MiB (from n.yaml, line 1)
                """)
        #expect(
            faults(environment: ["NUTHATCH_URL_LIMIT": "64KiB"]).first
                == """
                setting url-limit (from environment NUTHATCH_URL_LIMIT): 64KiB is too large; \
                allowed: at most setting request-head-limit, which is 32KiB \
                (from the built-in default)
                """)
    }

    @Test("A node open to others without allowed origins is reported with both settings")
    func openNodesNameBoth() {
        #expect(
            faults(environment: ["NUTHATCH_LISTEN": "127.0.0.1:8080 [::]:8080"]).first
                == """
                setting allow-origin or site is required because setting listen \
                (from environment NUTHATCH_LISTEN) has [::]:8080, which is beyond loopback; \
                allowed: *, HOST or *.SUFFIX, each perhaps with :PORT, \
                e.g. --allow-origin '*.example.com', \
                or --site www.example.com=http://127.0.0.1:9000
                """)
    }

    @Test("A node whose clear-text port is open to others is reported with that setting")
    func openPlainPort() {
        let environment = [
            "NUTHATCH_TLS_CERTIFICATE": "www.pem", "NUTHATCH_TLS_KEY": "www.key",
            "NUTHATCH_PLAIN_LISTEN": "0.0.0.0:80",
        ]
        let fault = faults(environment: environment).first
        #expect(
            fault?.hasPrefix(
                "setting allow-origin or site is required because setting plain-listen "
                    + "(from environment NUTHATCH_PLAIN_LISTEN) has 0.0.0.0:80,") == true)
    }
}
