package import Foundation
import Glibc

/// A headless Chromium with a profile of its own, asked through chromedriver as WebDriver
/// (W3C, Level 2) has it; gone with all that it wrote when released.
package final class Browser: Sendable {
    /// The browser, or chromedriver, refused or is not there.
    package struct DriverError: Error, CustomStringConvertible {
        package let description: String

        /// The page has drawn the element anew since it was found.
        package var isStaleElement: Bool { description.contains("stale element reference") }
    }

    private let driver: Program
    private let folder: URL
    private let port: Int
    /// The path of the session.
    private let session: String

    /// How long a page is waited for, and a script.
    private static let seconds = 60.0

    /// Starts a browser with an empty page.
    ///
    /// - Throws: ``DriverError`` that says what is missing or was said.
    package init() throws {
        guard let path = try? Program.find("chromedriver") else {
            throw DriverError(
                description: "there is no chromedriver in PATH; deploy/test installs it")
        }
        folder = try Program.temporaryFolder()
        // It keeps caches in the home of who runs it, and forgets files in the temporary folder.
        var driver = try Self.start(path, in: folder)
        // It takes a port that is free of one family, and may find it taken of the other.
        for _ in 0..<4 where Self.port(of: driver) == nil {
            driver = try Self.start(path, in: folder)
        }
        self.driver = driver
        do {
            guard let port = Self.port(of: driver) else {
                throw DriverError(description: "chromedriver does not start: \(driver.errors)")
            }
            self.port = port
            session = try Self.session(at: port, in: folder)
        } catch {
            Self.cleanUp(folder, after: driver)
            throw error
        }
    }

    deinit {
        _ = try? Self.send(port, "DELETE", session)
        Self.cleanUp(folder, after: driver)
    }

    /// Ends the driver, a browser that it could not end, and what they wrote.
    private static func cleanUp(_ folder: URL, after driver: Program) {
        driver.kill()
        for process in processes(of: folder) { _ = Glibc.kill(process, SIGKILL) }
        _ = Deadline.seconds(10).waitUntil {
            // What still ends may still write.
            try? FileManager.default.removeItem(at: folder)
            return !FileManager.default.fileExists(atPath: folder.path)
        }
    }

    /// Those that run with the profile in `folder`.
    private static func processes(of folder: URL) -> [Int32] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { Int32($0) }.filter { process in
            let line = try? String(contentsOfFile: "/proc/\(process)/cmdline", encoding: .utf8)
            return line?.contains(folder.path) == true
        }
    }

    private static func session(at port: Int, in folder: URL) throws -> String {
        let made = try send(port, "POST", "/session", ["capabilities": capabilities(folder)])
        guard let id = (made as? [String: Any])?["sessionId"] as? String else {
            throw DriverError(description: "no session: \(made)")
        }
        return "/session/\(id)"
    }

    private static func start(_ path: String, in folder: URL) throws -> Program {
        try Program(path, ["--port=0"], environment: ["HOME": folder.path, "TMPDIR": folder.path])
    }

    /// Nil if it does not start.
    private static func port(of driver: Program) -> Int? {
        var port: Int?
        _ = Deadline.seconds(30).waitUntil {
            let said = String(decoding: driver.output, as: UTF8.self)
            port = said.firstMatch(of: /on port ([0-9]+)\.\n/).flatMap { Int($0.output.1) }
            return port != nil || !driver.isRunning
        }
        return port
    }

    private static func capabilities(_ folder: URL) -> [String: Any] {
        // Chromium does not make its sandbox for root.
        let sandbox = geteuid() == 0 ? ["--no-sandbox"] : []
        let flags =
            [
                "--headless=new", "--disable-dev-shm-usage", "--disable-gpu",
                "--disable-breakpad", "--no-first-run", "--disable-background-networking",
                "--user-data-dir=\(folder.appending(path: "profile").path)",
            ] + sandbox
        return [
            "alwaysMatch": [
                "browserName": "chrome",
                "goog:chromeOptions": ["args": flags],
                "goog:loggingPrefs": ["browser": "ALL"],
                "timeouts": ["script": Int(seconds * 1_000), "pageLoad": Int(seconds * 1_000)],
            ]
        ]
    }

    /// One command of WebDriver; what it gives.
    @discardableResult
    package func send(
        _ path: String, _ parameters: [String: Any] = [:], method: String = "POST"
    ) throws -> Any {
        try Self.send(port, method, session + path, parameters)
    }

    private static func send(
        _ port: Int, _ method: String, _ path: String, _ parameters: [String: Any] = [:]
    ) throws -> Any {
        let connection = try HTTPConnection(port: port)
        let body =
            method == "POST" ? try JSONSerialization.data(withJSONObject: parameters) : Data()
        let fields = ["Content-Type: application/json", "Content-Length: \(body.count)"]
        let head = HTTPConnection.request(path, method: method, fields: fields)
        try connection.socket.send(head + Array(body))
        let response = connection.readResponse(method: method, seconds: seconds + 10)
        let read = try? JSONSerialization.jsonObject(
            with: Data(response.body ?? []), options: .fragmentsAllowed)
        guard let document = read as? [String: Any], let value = document["value"] else {
            throw DriverError(description: "\(method) \(path): \(response)")
        }
        guard response.status == 200 else {
            let said = (value as? [String: Any])?["message"] ?? value
            throw DriverError(description: "\(method) \(path): \(said)")
        }
        return value
    }
}

extension Browser {
    /// Goes to a page and returns when it is loaded.
    package func open(_ url: String) throws {
        try send("/url", ["url": url])
    }

    /// What an expression of JavaScript is, in the page; `arguments` are those given.
    ///
    /// - Returns: What JSON can say of it; elements as ``PageElement`` are found otherwise.
    package func value(_ expression: String, _ arguments: [Any] = []) throws -> Any {
        try send("/execute/sync", ["script": "return (\(expression));", "args": arguments])
    }

    /// Waits until an expression of JavaScript is true in the page; false if it never was.
    ///
    /// It is looked at in the page itself, twenty times a second.
    package func waitUntil(_ condition: String, seconds: Double = 20) throws -> Bool {
        let script = """
            const done = arguments[arguments.length - 1];
            const end = performance.now() + \(seconds * 1_000);
            const look = () => {
              let isThere = false;
              try { isThere = Boolean(\(condition)); } catch (error) { isThere = false; }
              if (isThere || performance.now() > end) done(isThere);
              else setTimeout(look, 50);
            };
            look();
            """
        return try send("/execute/async", ["script": script, "args": [Any]()]) as? Bool == true
    }

    /// The text of an element, found by a selector of CSS, as it is in the document.
    package func text(_ selector: String) throws -> String {
        try value("document.querySelector(arguments[0]).textContent", [selector]) as? String ?? ""
    }

    /// The first element that a selector of CSS finds.
    package func element(_ selector: String) throws -> PageElement {
        try PageElement(
            send("/element", ["using": "css selector", "value": selector]), of: self)
    }

    /// All that it finds.
    package func elements(_ selector: String) throws -> [PageElement] {
        let found = try send("/elements", ["using": "css selector", "value": selector])
        return try (found as? [Any] ?? []).map { try PageElement($0, of: self) }
    }

    /// Presses a key and lets it go, wherever the focus is.
    package func press(_ key: PageKey) throws {
        let steps = ["keyDown", "keyUp"].map { ["type": $0, "value": key.rawValue] }
        try send(
            "/actions", ["actions": [["type": "key", "id": "keyboard", "actions": steps]]])
    }

    /// Gives the page so many pixels, and the system's colours a tone.
    package func emulate(width: Int, height: Int, isDark: Bool = false) throws {
        try sendDevToolsCommand(
            "Emulation.setDeviceMetricsOverride",
            ["width": width, "height": height, "deviceScaleFactor": 1, "mobile": false])
        let tone = ["name": "prefers-color-scheme", "value": isDark ? "dark" : "light"]
        try sendDevToolsCommand("Emulation.setEmulatedMedia", ["features": [tone]])
    }

    /// A command of Chromium's own protocol.
    private func sendDevToolsCommand(_ command: String, _ parameters: [String: Any]) throws {
        try send("/goog/cdp/execute", ["cmd": command, "params": parameters])
    }

    /// What the console has got since it was asked the last time: errors of scripts, what a policy
    /// forbade, answers that were no success.
    package func consoleMessages() throws -> [String] {
        let entries = try send("/se/log", ["type": "browser"]) as? [[String: Any]] ?? []
        return entries.filter { ["SEVERE", "WARNING"].contains($0["level"] as? String ?? "") }
            .map { $0["message"] as? String ?? "\($0)" }
    }

    /// What is seen, as a PNG.
    package func screenshot() throws -> Data {
        let text = try send("/screenshot", method: "GET") as? String ?? ""
        guard let data = Data(base64Encoded: text) else {
            throw DriverError(description: "a picture that is no base64")
        }
        return data
    }
}

/// A key without a sign, by its number in WebDriver (§17.4.2).
package enum PageKey: String, Sendable {
    case tab = "\u{E004}"
    case enter = "\u{E007}"
    case escape = "\u{E00C}"
    case space = " "
    case slash = "/"
}

extension Browser {
    private static let shared = LockedBox<Browser?>(nil)

    /// The browser of this process, with a new page in place of the one it had.
    ///
    /// A browser takes seconds to start, and pages of different nodes share nothing: each node has
    /// a port, and so an origin, of its own. It ends with the process.
    ///
    /// - Throws: ``DriverError``.
    package static func withNewPage() throws -> Browser {
        if let browser = shared.value, (try? browser.replacePage()) != nil { return browser }
        let browser = try Browser()
        shared.value = browser
        ExitHandlers.atExit { shared.value = nil }
        return browser
    }

    /// Opens an empty page, closes the former one, and drops what the console said of it.
    private func replacePage() throws {
        let page = try send("/window/new", ["type": "tab"]) as? [String: Any]
        guard let handle = page?["handle"] as? String else {
            throw DriverError(description: "no page: \(page ?? [:])")
        }
        try send("/window", method: "DELETE")
        try send("/window", ["handle": handle])
        _ = try consoleMessages()
    }
}
