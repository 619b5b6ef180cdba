package preflight

// why says why a module of the standard library is not there.
type why struct {
	kind          Kind
	what, instead string
}

const gone = "removed in Python 3.13"

// missingLibrary has the modules of the standard library that no runtime has, and
// those that newer versions of the language have taken out.
var missingLibrary = map[string]why{
	"spwd":        {KindSystem, "there are no users", "leave it out"},
	"resource":    {KindSystem, "limits are the host's", "leave it out: the host measures memory and time"},
	"readline":    {KindSystem, "there is no terminal", "leave it out"},
	"curses":      {KindSystem, "there is no terminal", "print plain text"},
	"termios":     {KindSystem, "there is no terminal", "read sys.stdin"},
	"tty":         {KindSystem, "there is no terminal", "read sys.stdin"},
	"pty":         {KindProcess, "there is no terminal and no other program", "do it in Python"},
	"syslog":      {KindSystem, "there is no log of a system", "write to standard error"},
	"tkinter":     {KindSystem, "there is no screen", "print text, or write a file"},
	"turtle":      {KindSystem, "there is no screen", "write an image file"},
	"turtledemo":  {KindSystem, "there is no screen", "write an image file"},
	"idlelib":     {KindSystem, "there is no screen", "leave it out"},
	"winreg":      {KindSystem, "it is of Windows", "leave it out"},
	"msvcrt":      {KindSystem, "it is of Windows", "read sys.stdin"},
	"winsound":    {KindSystem, "it is of Windows", "leave it out"},
	"nis":         {KindSystem, "there are no users", "leave it out"},
	"ossaudiodev": {KindSystem, "there is no sound", "leave it out"},
	"venv":        {KindProcess, "packages cannot be installed at run time", "name what is needed in requires"},
	"ensurepip":   {KindProcess, "packages cannot be installed at run time", "name what is needed in requires"},
	"pip":         {KindProcess, "packages cannot be installed at run time", "name what is needed in requires"},
	"setuptools":  {KindProcess, "packages cannot be built at run time", "name what is needed in requires"},
	"distutils":   {KindImport, gone, "use shutil, sysconfig or packaging"},
	"imp":         {KindImport, gone, "use importlib"},
	"asyncore":    {KindNetwork, gone, "there are no sockets"},
	"asynchat":    {KindNetwork, gone, "there are no sockets"},
	"smtpd":       {KindNetwork, gone, "there are no sockets"},
	"telnetlib":   {KindNetwork, gone, "there are no sockets"},
	"nntplib":     {KindNetwork, gone, "there are no sockets"},
	"cgi":         {KindImport, gone, "use urllib.parse and email.message"},
	"cgitb":       {KindImport, gone, "use traceback"},
	"pipes":       {KindImport, gone, "use shlex.quote"},
	"crypt":       {KindImport, gone, "use hashlib"},
	"imghdr":      {KindImport, gone, "look at the first bytes of the file"},
	"sndhdr":      {KindImport, gone, "look at the first bytes of the file"},
	"mailcap":     {KindImport, gone, "use mimetypes"},
	"xdrlib":      {KindImport, gone, "use struct"},
	"uu":          {KindImport, gone, "use binascii or base64"},
	"aifc":        {KindImport, gone, "use wave"},
	"audioop":     {KindImport, gone, "use array"},
	"chunk":       {KindImport, gone, "use struct"},
	"sunau":       {KindImport, gone, "use wave"},
	"msilib":      {KindSystem, "it is of Windows", "leave it out"},
	"lib2to3":     {KindImport, gone, "use ast"},
}

// knownPrivate are modules with an underscore that scripts import all the same.
var knownPrivate = map[string]bool{"_collections_abc": true, "_thread": true, "_io": true, "_json": true, "_random": true, "_struct": true, "_csv": true}

// packageOf has modules that are not called as their package is.
var packageOf = map[string]string{
	"pptx": "python-pptx", "Crypto": "pycryptodome", "github": "pygithub", "OpenSSL": "pyopenssl",
	"usb": "pyusb", "magic": "python-magic", "jose": "python-jose", "ldap": "python-ldap",
	"MySQLdb": "mysqlclient", "zmq": "pyzmq", "gi": "pygobject", "wx": "wxpython",
	"telegram": "python-telegram-bot", "Levenshtein": "levenshtein", "skimage": "scikit-image",
	"pytesseract": "pytesseract", "speech_recognition": "speechrecognition", "win32api": "pywin32",
	"win32con": "pywin32", "pkg_resources": "setuptools", "tree_sitter": "tree-sitter",
	"rest_framework": "djangorestframework", "snowflake": "snowflake-connector-python", "faiss": "faiss-cpu",
}

const noNetwork = "scripts have HTTP requests alone: fetch it outside and give it as an argument or on standard input"

// insteadOf says what to do in the place of common packages.
var insteadOf = map[string]string{
	"openai": noNetwork, "anthropic": noNetwork, "google": noNetwork, "googleapiclient": noNetwork,
	"paramiko": noNetwork, "psycopg2": noNetwork, "pymongo": noNetwork, "playwright": noNetwork,
	"selenium": noNetwork, "github": noNetwork, "ujson": "use json", "orjson": "use json",
	"pydantic": "use dataclasses", "marshmallow": "use dataclasses", "pendulum": "use datetime and dateutil",
	"pdfplumber": "use pypdf", "fitz": "use pypdf",
	"docx":   "read the XML of the file with zipfile and xml.etree",
	"pptx":   "read the XML of the file with zipfile and xml.etree",
	"psutil": "leave it out: there are no other processes", "pytest": "run tests outside",
	"cv2": "use PIL or skimage of the scientific runtime", "numba": "use numpy", "torch": "use numpy or sklearn",
	"tensorflow": "use numpy or sklearn", "plotly": "use matplotlib", "polars": "use pandas",
	"duckdb": "use sqlite3 or pandas",
}

// ours are modules of the standard library that scripts get from the sandbox and not from a runtime.
var ours = map[string]bool{"fcntl": true, "grp": true, "pwd": true, "ssl": true}
