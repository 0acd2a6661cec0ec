//! Words that facts are made of. Part of every list, and part of all invented words, is kept from training.

/// Given names.
pub(crate) const FIRST: &str = "Ada Alan Alice Amara Amir Ana Andre Anita Anton Aria Arjun Arthur Astrid Ava Ben Beatriz Bella \
Boris Bruno Camila Carla Carlos Carmen Cecil Chen Chloe Clara Claude Dana Daniel Daria David Dean Diego Dora Edgar Edith \
Elena Eli Elias Elsa Emil Emma Enzo Erik Esther Eva Fatima Felix Fiona Frank Freya Gabriel George Gina Grace Greta Hana \
Hannah Hans Harriet Hassan Hector Helen Henry Hugo Ida Igor Ingrid Iris Isaac Isla Ivan Jack Jacob James Jane Jasmine \
Javier Jean Joan Johan John Jonas Jorge Jose Joseph Julia June Kai Karim Karl Kate Kenji Kevin Klara Lara Lars Laura Leah \
Lena Leo Leon Liam Lila Lin Linda Linus Lisa Louis Lucas Lucy Luis Luna Maja Marco Maria Marie Mark Marta Martin Mary \
Mateo Maya Mei Mia Michael Milan Mina Mohamed Monica Nadia Naomi Nadine Nia Nina Noah Noor Nora Olga Oliver Olivia Omar \
Oscar Otto Pablo Paul Paula Pedro Peter Petra Philip Priya Rachel Rafael Raj Ravi Rebecca Rita Robert Rosa Rosalind Ruth \
Ryan Salma Sam Samuel Sana Sandra Sara Sarah Sean Sergei Silvia Simon Sofia Sonia Stefan Stella Susan Sven Talia Tara \
Teresa Theo Thomas Tim Tina Tom Uma Uri Vera Victor Viola Walter Wendy Willem William Xavier Yara Yasmin Yuki Yusuf Zara \
Zoe Margaret Katherine Dorothy Charles Edward Anna Alex Chris Jordan Bob Tariq Wei Aisha Kofi Lorenzo Ines Marek Tomas José Zoë Chloé Renée François Søren Jürgen Björn Łukasz Inés André Héctor Åsa Émile";

/// Family names.
pub(crate) const LAST: &str = "Abbott Adams Ahmed Allen Almeida Anders Archer Bach Baker Banks Barnes Bauer Becker Bell Bennett \
Berg Bishop Black Blake Boole Bose Bowen Brandt Brown Bruce Burke Byrne Campbell Carter Castro Chandra Chavez Chen Church \
Clark Cohen Cole Cook Cooper Costa Cox Cruz Curie Dahl Davis Diaz Dixon Duarte Duncan Dunn Eckert Edwards Ellis Evans \
Farrell Fernandez Fischer Fisher Flores Ford Foster Fox Franklin Fraser Fuchs Garcia Gardner Gibson Gomez Gordon Graham \
Grant Gray Green Griffin Gupta Haas Hall Hamilton Hansen Harper Harris Hart Hayes Herrera Hill Hoffmann Holmes Hopper \
Howard Hughes Hunt Ito Ivanov Jackson James Jansen Jensen Johnson Jones Kaur Keller Kelly Khan Kim King Klein Knight Kovacs \
Kumar Lambert Lang Larsen Lee Lewis Li Lindgren Lopez Lovelace Lund Maier Mann Marin Marsh Martin Mason Mendez Meyer Miller \
Mills Moore Morales Morgan Moreau Morris Mueller Murphy Murray Nakamura Nelson Newton Nguyen Nielsen Novak Nowak Okafor \
Olsen Ortiz Osborne Owens Palmer Park Parker Patel Pearson Peeters Perez Perry Peters Petrov Phillips Porter Powell Price \
Quinn Ramirez Reed Reyes Rice Richards Rivera Roberts Robinson Rogers Romero Rossi Russell Ryan Salazar Sanchez Santos \
Sato Schmidt Schneider Scott Shah Sharma Shaw Silva Simpson Singh Smith Sousa Stein Stevens Stewart Stone Suzuki Svensson \
Tanaka Taylor Thomas Thompson Torres Tucker Turing Turner Vargas Vega Vogel Wagner Walker Wallace Walsh Wang Ward Watson \
Weber Webb Wells West White Williams Wilson Winter Wolf Wood Wright Wu Yamamoto Yang Young Zhang Zimmermann Doe Zapata Mehta Müller García Núñez Gödel Schröder Poincaré Dvořák Ångström López Šimić";

/// Cities.
pub(crate) const CITIES: &str = "Amsterdam|Athens|Atlanta|Austin|Baltimore|Bangkok|Barcelona|Basel|Beijing|Belfast|Berlin|Bern|Bogota\
|Bologna|Bordeaux|Boston|Bremen|Bristol|Brussels|Budapest|Buenos Aires|Cairo|Calgary|Cape Town|Cardiff|Chennai|Chicago|Cologne\
|Copenhagen|Cork|Dallas|Delhi|Denver|Detroit|Dresden|Dubai|Dublin|Edinburgh|Florence|Frankfurt|Geneva|Genoa|Ghent|Glasgow\
|Granada|Graz|Hamburg|Hanoi|Helsinki|Houston|Istanbul|Jakarta|Kyoto|Lagos|Leeds|Leipzig|Lima|Lisbon|Liverpool|London\
|Los Angeles|Lyon|Madrid|Malaga|Manchester|Manila|Marseille|Melbourne|Memphis|Mexico City|Miami|Milan|Montreal|Moscow|Mumbai\
|Munich|Nairobi|Nantes|Naples|New York|Nice|Osaka|Oslo|Ottawa|Oxford|Palermo|Paris|Perth|Philadelphia|Phoenix|Porto|Portland\
|Prague|Quito|Riga|Rio de Janeiro|Rome|Rotterdam|Salzburg|San Diego|San Francisco|Santiago|Sao Paulo|Seattle|Seoul|Seville\
|Shanghai|Singapore|Sofia|Stockholm|Stuttgart|Sydney|Taipei|Tallinn|Tokyo|Toronto|Toulouse|Turin|Utrecht|Valencia|Vancouver\
|Venice|Vienna|Vilnius|Warsaw|Washington|Wellington|York|Zagreb|Zurich|Cambridge|Boulder|Nashville|Oakland|Reykjavik|Zürich|São Paulo|Malmö|Köln|Málaga|Springfield";

/// Countries.
pub(crate) const COUNTRIES: &str = "Argentina|Australia|Austria|Belgium|Brazil|Canada|Chile|China|Colombia|Croatia|Denmark|Egypt\
|England|Estonia|Finland|France|Germany|Ghana|Greece|Hungary|Iceland|India|Indonesia|Ireland|Israel|Italy|Japan|Kenya|Latvia\
|Malaysia|Mexico|Morocco|Nepal|Netherlands|New Zealand|Nigeria|Norway|Pakistan|Peru|Poland|Portugal|Romania|Scotland|Serbia\
|Singapore|Slovakia|Slovenia|South Africa|South Korea|Spain|Sweden|Switzerland|Thailand|Tunisia|Turkey|Ukraine|Vietnam|Wales";

/// Trades and professions.
pub(crate) const JOBS: &str = "accountant|actor|analyst|architect|artist|astronaut|baker|barber|biologist|carpenter|chef|chemist|cleaner\
|coach|consultant|cook|dancer|data scientist|dentist|designer|detective|doctor|driver|economist|editor|electrician|engineer\
|farmer|firefighter|fisherman|florist|gardener|geologist|graphic designer|historian|journalist|judge|lawyer|librarian|manager\
|mathematician|mechanic|midwife|miner|musician|nurse|painter|pharmacist|photographer|physicist|pilot|plumber|poet|police officer\
|product manager|professor|programmer|project manager|receptionist|researcher|sailor|sales manager|scientist|sculptor|secretary\
|singer|social worker|software engineer|soldier|surgeon|tailor|teacher|technician|translator|veterinarian|waiter|web developer\
|welder|writer|zoologist";

/// Things that are sold.
pub(crate) const GOODS: &str = "apple|backpack|banana|bicycle|blanket|book|bottle|bowl|box|brush|bucket|cable|cake|calculator|camera|candle\
|carpet|chair|charger|clock|coat|coffee maker|cup|curtain|desk|desk lamp|drill|fan|folder|fork|frame|glove|guitar|hammer|hat\
|headphone|helmet|jacket|jar|kettle|keyboard|knife|ladder|lamp|laptop|lemon|light bulb|lock|marker|mattress|microphone|mirror\
|monitor|mouse|mousepad|mug|notebook|office chair|orange|oven|paint roller|pan|pen|pencil|phone case|pillow|pizza|plate|poster\
|printer|projector|rope|router|rug|sandwich|saw|scarf|screen|screwdriver|shelf|shirt|shovel|sofa|speaker|spoon|stapler|stool\
|suitcase|sweater|table|tablet|teapot|tent|tomato|toaster|towel|toy car|umbrella|USB cable|vase|wallet|washer|watch|webcam|wrench";

/// Words that tell one thing from another of its kind.
pub(crate) const ADJECTIVES: &str = "red blue green black white yellow silver purple small large heavy light wireless wooden plastic steel \
leather cotton electric folding portable round square soft vintage modern compact digital ceramic paper waterproof glass \
cordless mini golden brown orange cheap classic smart spare";

/// Lower-case nouns for titles and subjects.
pub(crate) const TOPICS: &str = "budget|marketing|design|sales|planning|security|training|strategy|hiring|research|science|music|history\
|robotics|poetry|chess|cooking|climate|energy|safety|product|quality|team|project|board|summer|winter|spring|autumn|garden|charity\
|engineering|finance|literature|photography|travel|health|film|jazz|data|language|art|physics|chemistry|startup|software|volunteer";

/// What people come together for.
pub(crate) const GATHERINGS: &str = "meeting|workshop|review|seminar|conference|party|concert|fair|lunch|dinner|breakfast|call|retreat|course\
|festival|exhibition|lecture|session|webinar|kickoff|ceremony|picnic|tournament|hackathon|reading|rehearsal|walk|class";

/// Things that break, and how.
pub(crate) const TROUBLES: &str = "the login page shows an error|the app crashes on start|my password reset email never arrived\
|the printer does not print|the screen stays black|payments are declined|the invoice is wrong|the search returns nothing\
|the report is empty|uploads fail|the website is very slow|videos do not play|the battery drains fast|I cannot log in\
|the package is damaged|my order never arrived|I was charged twice|the export button does nothing|the map does not load\
|notifications come too late|the keyboard does not respond|the camera is blurry|the sound is missing|the link is broken\
|the server is down|the backup failed|files disappear|the update does not install|the coupon code is rejected\
|the app logs me out|the chart shows old data|the door does not open|the heating is off|the light flickers|a tap is dripping\
|the phone gets hot|the import stops half way|the calendar shows the wrong day|the subscription was not cancelled\
|the refund has not arrived|the text is unreadable|the tablet does not charge|two factor codes do not work";

/// Beginnings of invented words.
pub(crate) const ONSETS: &str =
    "b br c ch cl d dr f fl g gl gr h j k kr l m n p pr qu r s sh sk st t th tr v w z";
/// Middles of invented words.
pub(crate) const VOWELS: &str = "a e i o u a e i o ai ea ei ia io ou";
/// Ends of the syllables of invented words.
pub(crate) const CODAS: &str = "b ck d l ld ll m n nd ng nt r rd rk rn rt s ss st t th x z";
